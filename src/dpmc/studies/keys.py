"""The keys of a study's file, declared once: meaning, rule and default of each.

Reading, checks, the tables of config/README.md and the JSON schema (`docs/tools/study_keys.py`) follow
from these fields. `study.Study` is what they mean, with every default filled in.
"""

import math
import re
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictInt,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from dpmc.common import files
from dpmc.common.errors import DpmcError
from dpmc.common.streams import canonical_epsilon
from dpmc.common.values import MOST, shown
from dpmc.studies.documents import Document

#: Data sets of dpmc; equal to `dpmc.data.datasets.DATASET_PATTERN` (tested), which is slow to import.
DATA_SETS = r"published|tuning|fresh-[0-9]+|(fashion|digits|mnist)-79"
OVER_N = r" *[0-9.]+(e-?[0-9]+)? */ *n *"  #: δ as a multiple of 1/n


class Changes(Enum):
    """What a change of a key makes anew."""

    CHAINS = "chains"
    CHAINS_IF_SET = (
        "chains; a key that came later, which leaves the settings of those without it as they were"
    )
    ROWS = "data, and with them chains"
    TRIALS = "tuning files and searches, and with them chains"
    BY_METHOD = "chains, as the default of the method's key"
    NOTHING = "no chains: which cells, figures and words there are"


CHAINS, CHAINS_IF_SET, ROWS, TRIALS, BY_METHOD, NOTHING = Changes


def key(meaning: str, default: Any = ..., changes: Changes | None = None) -> Any:
    """Declare a key of the file, and what it changes; it is required if it has no default."""
    # A default of {} is validated, which makes it the object of a nested declaration.
    field = Field(default, description=meaning, validate_default=default == {})
    field.metadata.append(changes)
    return field


def _epsilon(value: str | float) -> str:
    try:
        return canonical_epsilon(value)
    except DpmcError as error:
        raise ValueError(str(error).removeprefix("epsilon: ")) from None


def _delta(value: object) -> object:
    over_n = isinstance(value, str) and re.fullmatch(OVER_N, value)
    if not over_n and not (isinstance(value, float) and 0.0 < value < 1.0):
        raise ValueError(f"{shown(value)} must be a number in (0, 1), or a text such as 0.1/n")
    return value


def _data(value: str) -> str:
    name, own = files.stem(Path(value)), files.is_table(Path(value))
    if not own and not re.fullmatch(DATA_SETS, value):
        known = f"published, tuning, fresh-<number>, pictures, or a file of rows ({', '.join(files.TABLES)})"
        raise ValueError(f"{shown(value)} must be {known}")
    if own and (re.fullmatch(DATA_SETS, name) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name)):
        rule = "the file's name must be of letters, digits, '.', '_', '-', and not that of a data set of dpmc"
        raise ValueError(f"{shown(value)}: {rule}")
    return value


def _start(value: object) -> object:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if value not in ("perturbed", "true") and not (is_number and 0.0 < float(str(value)) < math.inf):
        raise ValueError(f"{shown(value)} must be `perturbed`, `true` in quotes, or a number above 0")
    return float(str(value)) if is_number else value


def _different(values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if values.count(value) > 1:
            raise ValueError(f"{value} stands twice")
    return values


def told(rule: str, *any_of: dict[str, Any], **other: Any) -> WithJsonSchema:
    """Say the rule of a value in words, and in the JSON schema for editors."""
    return WithJsonSchema({"rule": rule, **({"anyOf": [*any_of]} if any_of else {}), **other})


NUMBER = {"type": "number", "exclusiveMinimum": 0}
Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[tuple[Text, ...], Field(min_length=1)]
Label = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")]
Count = Annotated[StrictInt, Field(ge=1, le=MOST)]
Number = Annotated[StrictInt, Field(ge=1, le=100_000)]  # of seeds and the like
OWN_OR_SET = "data set, or your own rows: `.csv`, `.csv.gz`, `.parquet`, `.xlsx`"
Data = Annotated[Text, AfterValidator(_data), told(OWN_OR_SET, type="string")]
DELTAS = ({**NUMBER, "exclusiveMaximum": 1}, {"type": "string", "pattern": f"^{OVER_N}$"})
Delta = Annotated[float | str, BeforeValidator(_delta), told("> 0, < 1/n, or as `0.1/n`", *DELTAS)]
Epsilon = Annotated[str, BeforeValidator(_epsilon), told("> 0, or `inf`", NUMBER, {"const": "inf"})]
Epsilons = Annotated[tuple[Epsilon, ...], Field(min_length=1), AfterValidator(_different)]
Which = Literal["published", "tuned"]
STARTS_TOLD = told("`perturbed`, `'true'` or > 0", NUMBER, {"enum": ["perturbed", "true"]})
Start = Annotated[float | str, BeforeValidator(_start), STARTS_TOLD]


class Keys(BaseModel):
    """A mapping of the file; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, given: Any) -> Any:
        # Before pydantic's own check, by which a misspelt key would also be missing.
        for name in given if isinstance(given, dict) else ():
            if name not in cls.model_fields:
                known = ", ".join(cls.model_fields)
                raise PydanticCustomError("key", "{key}: {known}", {"key": name, "known": known})
        return given


class RunKeys(Keys):
    """Keys that say what is run."""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Raise TypeError for a key that does not say what it changes."""
        super().__pydantic_init_subclass__(**kwargs)
        for name, info in cls.model_fields.items():
            if not any(isinstance(part, Changes) for part in info.metadata):
                raise TypeError(f"{cls.__name__}.{name}: does not say what a change makes anew (`Changes`)")

    @classmethod
    def that_change(cls, what: Changes) -> list[str]:
        """Return the names of the keys whose change makes this anew, in their order."""
        return [name for name, info in cls.model_fields.items() if what in info.metadata]


class ModelSpec(RunKeys):
    """The keys of a model."""

    model: Text = key("catalogue id, or your own as `module:Class`; default: the label", "", CHAINS)
    data: Data = key("data set; a file's path is relative to the study's folder", "published", CHAINS)
    columns: Texts = key("columns of that file by name; default: the model's, else all", (), ROWS)
    n: Count | None = key("number of rows; default: the catalogue's, or that of the file", None, CHAINS)
    start: Start = key(
        "start points: as in the thesis, Section 5.2, so many times as far from the true θ, or all there",
        "perturbed",
        CHAINS,
    )
    settings_of: Text = key(
        "model whose hyperparameters are used if this label has none in the file", "", TRIALS
    )
    epsilons: Epsilons = key("ε of the cells", changes=NOTHING)
    tuning_epsilon: Epsilon = key(
        "ε of trials on tuning data; not needed with `tuning: {mode: none}` and no `methods` there",
        "",
        TRIALS,
    )
    iterations: Count | None = key(
        "iterations of each chain, unless the method has its own number", None, BY_METHOD
    )
    thin: Count = key("keep every `thin`-th draw, unless the method has its own number", 1, BY_METHOD)


class MethodSpec(RunKeys):
    """The keys of a method."""

    from_study: Text = key(
        "another study that runs this method; its cells are reused and none is run", "", NOTHING
    )
    algorithm: Text = key("algorithm; default: the label", "", CHAINS)
    accountant: Text = key("an accountant, or a preset: `thesis` or `tight`", "tight", CHAINS)
    settings_of: Text = key(
        "method whose hyperparameters are used if this label has none; default: the algorithm", "", TRIALS
    )
    hyperparameters: Which | None = key("files of hyperparameters; default: the study's", None, TRIALS)
    options: dict[str, Any] = key("override hyperparameters, e.g. `reuse_gradients: true`", {}, CHAINS)
    iterations: Count | None = key(
        "iterations of each chain (needed for ε = inf); default: the model's", None, CHAINS
    )
    most_iterations: Count | None = key("largest number of iterations, even if budget is left", None, CHAINS)
    thin: Count = key("keep every `thin`-th draw; default: the model's", 1, CHAINS)
    most_draws: Count | None = key(
        "of k > `most_draws` draws keep every ⌊k/`most_draws`⌋-th; all iterations are spent",
        None,
        CHAINS_IF_SET,
    )
    models: Texts = key("models it runs on; default: all", (), NOTHING)
    epsilons: Epsilons = key("ε of the cells, e.g. `[inf]`; default: the models'", (), NOTHING)


class RepeatedSpec(RunKeys):
    """The keys of repeated runs: on many data sets of a model, for the coverage of intervals."""

    model: Text = key(
        "model of the study by label, catalogue id or `module:Class`; default: the label", "", NOTHING
    )
    n: Count | None = key("number of rows; default: the model's", None, NOTHING)
    start: Start | None = key("start points, as of a model; default: the model's", None, NOTHING)
    settings_of: Text = key("as of a model; default: the model's", "", NOTHING)
    epsilons: Epsilons = key("ε of the runs, unless the method has its own", changes=NOTHING)
    methods: Texts = key(
        "methods, also of other studies; default: all that the study runs itself", (), NOTHING
    )
    sets: Number = key("data sets, `fresh-0` and on; one run on each", changes=NOTHING)


class Tuning(RunKeys):
    """How hyperparameters are tried, and which ones `make tune` searches."""

    mode: Literal["pinned", "search", "none"] = key(
        "try the pinned setting on tuning data, search a better one, or use the pinned one untried",
        "pinned",
        TRIALS,
    )
    seeds: Number = key("runs of each setting", 4, TRIALS)
    trials: Number = key("settings that a search tries", 100, TRIALS)
    methods: Texts = key(
        "methods that `make tune` searches; default: all, none with `mode: none`", (), NOTHING
    )
    models: Texts = key("models on which `make tune` searches; default: all", (), NOTHING)


class StudyKeys(RunKeys):
    """The keys of a study's file."""

    title: Text = key("title in one line", changes=NOTHING)
    epsilon_kind: Literal["total", "per-iteration"] = key(
        "ε of a whole run, or of an iteration", "total", CHAINS_IF_SET
    )
    delta: Delta = key("δ of a run, or of an iteration if ε is per iteration", changes=CHAINS)
    seeds: Number = key("independent runs per cell, each with the whole budget", changes=NOTHING)
    chains: Number = key("chains of one run; they share its budget", 1, CHAINS)
    hyperparameters: Which = key("`<settings_of>.yaml`, or `<settings_of>.tuned.yaml`", "published", TRIALS)
    settings_of: Text = key("study whose hyperparameter files are used; default: this one", "", TRIALS)
    tuning: Tuning = key("how hyperparameters are tried: keys below", {}, NOTHING)
    models: Annotated[dict[Label, ModelSpec], Field(min_length=1)] = key(
        "label → keys below", changes=NOTHING
    )
    methods: Annotated[dict[Label, MethodSpec], Field(min_length=1)] = key(
        "label → keys below", changes=NOTHING
    )
    repeated: dict[Label, RepeatedSpec] = key("runs on many data sets: label → keys below", {}, NOTHING)
    figures: tuple[Text, ...] = key(
        "names of figures and tables; default: all figures of `figures/<study>.yaml`", (), NOTHING
    )


Validated = TypeVar("Validated", bound=BaseModel)

#: kind of pydantic's error -> its rule in the words of YAML
WORDS = {
    "tuple_type": "must be a list, such as [a, b]",
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "must be keys with values"),
    "string_type": "must be a text",
    "bool_type": "must be true or false",
    "int_type": "must be a whole number",
}


def validated(declaration: type[Validated], document: Document) -> Validated:
    """Return a document's content, validated; raise DpmcError for the first broken rule."""
    if not isinstance(document.content, dict):
        what = {list: "a list", type(None): "empty"}.get(type(document.content), "a single value")
        example = ", such as title: My study (config/README.md)" if declaration is StudyKeys else ""
        document.refuse(rule=f"is {what}; must be keys with values{example}")
    try:
        return declaration.model_validate(document.content)
    except ValidationError as caught:
        error = caught.errors(include_url=False)[0]
    # pydantic adds "[key]" for an error in a key itself.
    keys = [key for key in error["loc"] if key != "[key]"]
    kind, context = error["type"], error.get("ctx", {})
    if kind == "missing":
        document.refuse(*keys[:-1], rule=f"key {keys[-1]!r} is missing")
    if kind == "key":
        document.refuse(*keys, context["key"], rule=f"unknown key; known: {context['known']}")
    if kind == "value_error":
        document.refuse(*keys, rule=str(context["error"]))
    words = WORDS.get(kind) or error["msg"].partition(" or instance of ")[0]  # without the name of our class
    document.refuse(*keys, rule=f"{shown(error['input'])}: {words}")
