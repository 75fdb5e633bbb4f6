"""The keys of a study's file, declared once: meaning, rule and default of each.

Reading, checks and the tables of config/README.md (`python -m dpmc.studies`) follow from these fields. A
field made by `added` is no key of the file: reading fills it in.
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
    field_validator,
)

from dpmc.errors import DpmcError
from dpmc.randomness import canonical_epsilon
from dpmc.studies.documents import Document
from dpmc.values import MOST, shown

#: Data sets that dpmc makes; `dpmc.datasets.DATASET_PATTERN` is the same (tested), and slow to import.
DATA_SETS = r"published|tuning|fresh-[0-9]+|(fashion|digits|mnist)-79(-own)?"
OWN_ROWS = (".csv",)  #: files of rows, by their endings


def added(default: Any) -> Any:
    """A field that is no key of the file."""
    return Field(default, validation_alias="(added)")


def _epsilon(value: Any) -> str:
    if value != "inf" and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise ValueError(f"{shown(value)} must be a number greater than 0, or inf")
    try:
        return canonical_epsilon(value)
    except DpmcError as error:
        raise ValueError(str(error).removeprefix("epsilon: ")) from None


def _delta(value: Any) -> Any:
    number = isinstance(value, int | float) and not isinstance(value, bool) and 0.0 < value < 1.0
    if not number and not re.fullmatch(
        r" *[0-9.]+(e-?[0-9]+)? */ *n *", value if isinstance(value, str) else ""
    ):
        raise ValueError(f"{shown(value)} must be a number in (0, 1), or a text such as 0.1/n")
    return value


def _data(value: str) -> str:
    name = Path(value).stem
    if Path(value).suffix in OWN_ROWS:
        if re.fullmatch(DATA_SETS, name) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
            raise ValueError(
                f"{shown(value)}: the file's name must be of letters, digits, '.', '_' and '-', "
                "and not that of a data set which dpmc makes"
            )
    elif not re.fullmatch(DATA_SETS, value):
        raise ValueError(
            f"{shown(value)} must be published, tuning, fresh-<number>, the name of pictures, "
            f"or a file of rows ({', '.join(OWN_ROWS)})"
        )
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
    str, AfterValidator(_data), WithJsonSchema({"rule": "data set (below), or your own rows (`.csv`)"})
]
Delta = Annotated[
    float | str, BeforeValidator(_delta), WithJsonSchema({"rule": "a number in (0, 1), or as `0.1/n`"})
]
Epsilon = Annotated[str, BeforeValidator(_epsilon), WithJsonSchema({"rule": "a number > 0, or `inf`"})]
Epsilons = Annotated[tuple[Epsilon, ...], Field(min_length=1), AfterValidator(_different)]


class Keys(BaseModel):
    """A mapping of the file: other keys are refused, and so are keys without a value."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("*", mode="before")
    @classmethod
    def _has_a_value(cls, value: Any) -> Any:
        if value is None:
            raise ValueError("None must be a value, or the key be left out")
        return value


class ModelSpec(Keys):
    """What a model label stands for."""

    label: str = added("")
    model: Text = Field("", description="catalogue id, or your own as `module:Class`; default: the label")
    data: Data = Field(
        "published", description="data set; a file's path is absolute, or relative to the study's folder"
    )
    rows_file: Path | None = added(None)  # the file of one's own rows; `data` is then its stem
    n: Count | None = Field(None, description="rows; default: the catalogue's number, or those of the file")
    start: Literal["perturbed", "true"] = Field(
        "perturbed", description="start points: by Section 5.2 of the thesis, or all at the true θ"
    )
    settings_of: Text = Field("", description="model whose hyperparameters are used; default: the label")
    epsilons: Epsilons = Field(description="ε of the cells")
    tuning_epsilon: Epsilon = Field(
        "", description="ε at which hyperparameters are tried; not needed with `tuning: {mode: none}`"
    )
    iterations: Count | None = Field(None, description="of the chains of methods that say nothing else")
    thin: Count = Field(1, description="likewise: every so-many-th draw is kept")

    @property
    def is_own_rows(self) -> bool:
        """Whether `data` names a file of rows, as the study has it."""
        return Path(self.data).suffix in OWN_ROWS


class MethodSpec(Keys):
    """What a method label stands for."""

    label: str = added("")
    from_study: Text = Field(
        "", description="another study that runs this method: its cells are reused, none is run"
    )
    algorithm: Text = Field("", description="default: the label")
    accountant: Text = Field("tight", description="an accountant, or a preset: `thesis` or `tight`")
    settings_of: Text = Field("", description="method whose hyperparameters are used; default: the algorithm")
    hyperparameters: Literal["published", "tuned"] | None = Field(None, description="in place of the study's")
    options: dict[str, Any] = Field({}, description="overrule hyperparameters, e.g. `reuse_gradients: true`")
    iterations: Count | None = Field(
        None, description="of each chain; needed for ε = inf; default: the model's"
    )
    most_iterations: Count | None = Field(
        None, description="a chain stops there, however much budget is left"
    )
    thin: Count = Field(1, description="every so-many-th draw is kept; default: the model's")
    most_draws: Count | None = Field(
        None,
        description="of k > `most_draws` draws every ⌊k/`most_draws`⌋-th is kept; all iterations count",
    )
    models: Texts = Field((), description="models it runs on; default: all")
    epsilons: Epsilons = Field((), description="in place of the models' own, e.g. `[inf]`")


class Tuning(Keys):
    """How hyperparameters are tried, and what `make tune` searches."""

    mode: Literal["pinned", "search", "none"] = Field(
        "pinned",
        description="`pinned`: try the pinned setting on tuning data; `search`: search a better one; "
        "`none`: take it as it is",
    )
    seeds: Number = Field(4, description="runs of a setting that is tried")
    trials: Number = Field(100, description="settings that a search tries")
    methods: Texts = Field(
        (),
        description="what `make tune` searches; default: all with free hyperparameters and a budget, "
        "nothing with `mode: none`",
    )
    models: Texts = Field((), description="likewise; default: all")


class StudyKeys(Keys):
    """What a study's file says."""

    title: Text = Field(description="one line")
    epsilon_kind: Literal["total", "per-iteration"] = Field(
        "total", description="ε of a whole run, or of an iteration: they never share an axis"
    )
    delta: Delta = Field(description="δ of a run, or of an iteration where ε is")
    seeds: Number = Field(description="independent runs per cell, each with the whole budget")
    chains: Number = Field(1, description="chains of one run; they share its budget")
    hyperparameters: Literal["published", "tuned"] = Field(
        "published",
        description="those of `<settings_of>.yaml`, or of `<settings_of>.tuned.yaml` (docs/tuning.md)",
    )
    settings_of: Text = Field("", description="study whose hyperparameter files are read; default: this one")
    tuning: Tuning = Field({}, validate_default=True, description="how hyperparameters are tried: keys below")
    models: dict[Label, ModelSpec] = Field(min_length=1, description="label → keys below")
    methods: dict[Label, MethodSpec] = Field(min_length=1, description="label → keys below")
    figures: tuple[Text, ...] = Field(description="names of figures")


#: What an error says of a value, by pydantic's name of the rule; ValueErrors of the checks above speak for
#: themselves.
_WORDS = {
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "int_type": "must be an integer",
    "string_type": "must be a text",
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "literal_error": "must be {expected}",
    "too_short": "must have at least {min_length} entry",
    "string_too_short": "must not be empty",
    "string_pattern_mismatch": "must match {pattern}",
}

Declared = TypeVar("Declared", bound=BaseModel)


def validated(declaration: type[Declared], document: Document) -> Declared:
    """Return a document's content as its declaration has it; DpmcError for what breaks a rule."""
    try:
        return declaration.model_validate(document.content)
    except ValidationError as caught:
        error = caught.errors(include_url=False)[0]
    keys = [key for key in error["loc"] if key != "[key]"]
    if error["type"] == "missing":
        document.refuse(*keys[:-1], rule=f"key {keys[-1]!r} is missing")
    if error["type"] == "extra_forbidden":
        kinds: dict[Any, type[Keys]] = {"models": ModelSpec, "methods": MethodSpec, "tuning": Tuning}
        known = described(kinds[keys[0]] if len(keys) > 1 else StudyKeys)
        document.refuse(*keys, rule=f"unknown key; known: {', '.join(known)}")
    context = error.get("ctx", {})
    if error["type"] == "value_error":
        document.refuse(*keys, rule=str(context["error"]))
    words = _WORDS[error["type"]].format(**context) if error["type"] in _WORDS else error["msg"]
    document.refuse(*keys, rule=f"{shown(error['input'])} {words}")


def described(declaration: type[Keys]) -> list[str]:
    """Return the keys that a mapping of the file may have."""
    return [name for name, field in declaration.model_fields.items() if field.description]
