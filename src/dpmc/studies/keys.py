"""The keys of a study's file, declared once: meaning, rule and default of each.

Reading, checks, the tables of config/README.md and the JSON schema (`python -m dpmc.studies`) follow from
these fields. `study.Study` is what they mean, with every default filled in.
"""

import re
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
DATA_SETS = r"published|tuning|fresh-[0-9]+|(fashion|digits|mnist)-79(-own)?"
OVER_N = r" *[0-9.]+(e-?[0-9]+)? */ *n *"  #: δ as a multiple of 1/n


def key(meaning: str, default: Any = ...) -> Any:
    """Declare a key of the file; it is required if it has no default."""
    # A default of {} is validated, which makes it the object of a nested declaration.
    return Field(default, description=meaning, validate_default=default == {})


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


def _different(values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if values.count(value) > 1:
            raise ValueError(f"{value} stands twice")
    return values


Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[tuple[Text, ...], Field(min_length=1)]
Label = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")]
Count = Annotated[StrictInt, Field(ge=1, le=MOST)]
Number = Annotated[StrictInt, Field(ge=1, le=100_000)]  # of seeds and the like
Data = Annotated[
    Text,
    AfterValidator(_data),
    WithJsonSchema(
        {"rule": "data set, or your own rows: `.csv`, `.csv.gz`, `.parquet`, `.xlsx`", "type": "string"}
    ),
]
Delta = Annotated[
    float | str,
    BeforeValidator(_delta),
    WithJsonSchema(
        {
            "rule": "> 0, < 1/n, or as `0.1/n`",
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
                {"type": "string", "pattern": f"^{OVER_N}$"},
            ],
        }
    ),
]
Epsilon = Annotated[
    str,
    BeforeValidator(_epsilon),
    WithJsonSchema(
        {"rule": "> 0, or `inf`", "anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"const": "inf"}]}
    ),
]
Epsilons = Annotated[tuple[Epsilon, ...], Field(min_length=1), AfterValidator(_different)]
Which = Literal["published", "tuned"]


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


class ModelSpec(Keys):
    """The keys of a model."""

    model: Text = key("catalogue id, or your own as `module:Class`; default: the label", "")
    data: Data = key("data set; a file's path is relative to the study's folder", "published")
    columns: Texts = key("columns of that file by name; default: the model's, else all", ())
    n: Count | None = key("number of rows; default: the catalogue's, or that of the file", None)
    start: Literal["perturbed", "true"] = key(
        "start points: as in the thesis, Section 5.2, or all at the true θ", "perturbed"
    )
    settings_of: Text = key("model whose hyperparameters are used if this label has none in the file", "")
    epsilons: Epsilons = key("ε of the cells")
    tuning_epsilon: Epsilon = key(
        "ε of trials on tuning data; not needed with `tuning: {mode: none}` and no `methods` there", ""
    )
    iterations: Count | None = key("iterations of each chain, unless the method has its own number", None)
    thin: Count = key("keep every `thin`-th draw, unless the method has its own number", 1)


class MethodSpec(Keys):
    """The keys of a method."""

    from_study: Text = key("another study that runs this method; its cells are reused and none is run", "")
    algorithm: Text = key("algorithm; default: the label", "")
    accountant: Text = key("an accountant, or a preset: `thesis` or `tight`", "tight")
    settings_of: Text = key(
        "method whose hyperparameters are used if this label has none; default: the algorithm", ""
    )
    hyperparameters: Which | None = key("files of hyperparameters; default: the study's", None)
    options: dict[str, Any] = key("override hyperparameters, e.g. `reuse_gradients: true`", {})
    iterations: Count | None = key(
        "iterations of each chain (needed for ε = inf); default: the model's", None
    )
    most_iterations: Count | None = key("largest number of iterations, even if budget is left", None)
    thin: Count = key("keep every `thin`-th draw; default: the model's", 1)
    most_draws: Count | None = key(
        "of k > `most_draws` draws keep every ⌊k/`most_draws`⌋-th; all iterations are spent", None
    )
    models: Texts = key("models it runs on; default: all", ())
    epsilons: Epsilons = key("ε of the cells, e.g. `[inf]`; default: the models'", ())


class Tuning(Keys):
    """How hyperparameters are tried, and which ones `make tune` searches."""

    mode: Literal["pinned", "search", "none"] = key(
        "try the pinned setting on tuning data, search a better one, or use the pinned one untried", "pinned"
    )
    seeds: Number = key("runs of each setting", 4)
    trials: Number = key("settings that a search tries", 100)
    methods: Texts = key("methods that `make tune` searches; default: all, none with `mode: none`", ())
    models: Texts = key("models on which `make tune` searches; default: all", ())


class StudyKeys(Keys):
    """The keys of a study's file."""

    title: Text = key("title in one line")
    epsilon_kind: Literal["total", "per-iteration"] = key("ε of a whole run, or of an iteration", "total")
    delta: Delta = key("δ of a run, or of an iteration if ε is per iteration")
    seeds: Number = key("independent runs per cell, each with the whole budget")
    chains: Number = key("chains of one run; they share its budget", 1)
    hyperparameters: Which = key("`<settings_of>.yaml`, or `<settings_of>.tuned.yaml`", "published")
    settings_of: Text = key("study whose hyperparameter files are used; default: this one", "")
    tuning: Tuning = key("how hyperparameters are tried: keys below", {})
    models: Annotated[dict[Label, ModelSpec], Field(min_length=1)] = key("label → keys below")
    methods: Annotated[dict[Label, MethodSpec], Field(min_length=1)] = key("label → keys below")
    figures: tuple[Text, ...] = key(
        "names of figures and tables; default: all figures of `figures/<study>.yaml`", ()
    )


Declared = TypeVar("Declared", bound=BaseModel)


def validated(declaration: type[Declared], document: Document) -> Declared:
    """Return a document's content, validated; raise DpmcError for the first broken rule."""
    if not isinstance(document.content, dict):
        what = {list: "a list", type(None): "empty"}.get(type(document.content), "a single value")
        document.refuse(
            rule=f"is {what}; must be keys with values, such as title: My study (config/README.md)"
        )
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
    words = error["msg"].partition(" or instance of ")[0]  # without the name of our class
    document.refuse(*keys, rule=f"{shown(error['input'])}: {words}")
