"""Codebooks: what is public about a table, written by its holder before anyone looks at rows.

A codebook is a YAML or JSON file in the words of the Table Schema standard (`fields` with `name`, `type`,
`constraints`, …), with some of our own: `centre`, `scale`, `shape`, `share`, `fill`, `person`, `unit`. It
decides how rows are read, what predictors are scaled by, and what is simulated. One made from the rows is no
codebook: whatever depends on them is covered by no ε.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator
from pydantic import Field as described

from dpmc.common.errors import DpmcError
from dpmc.common.values import shown
from dpmc.models.columns import USUALLY_MISSING, Declared, Dialect, same_name, text_of

#: Where a skewed or counted predictor lies within its bounds: its mean is this share of the way up.
LOW = 0.1
#: Standard deviations of a predictor between its bounds, if it is about normal.
WITHIN = 4.0


def _unquoted(word: Any) -> Any:
    """Refuse a word that YAML took for a boolean: yes, no, on, off, true, false without quotes."""
    if isinstance(word, bool):
        raise ValueError(f'{str(word).lower()}: put words such as "yes", "no", "true" in quotes')
    return word


Word = Annotated[str | int | float, BeforeValidator(_unquoted)]  #: of a table


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Constraints(_Part):
    """What entries of a field are within; others are odd."""

    minimum: float | None = None
    maximum: float | None = None
    enum: tuple[Word, ...] | None = described(
        None, description="levels of a category, the first without a coefficient"
    )
    required: bool = False


class Table(_Part):
    """How a CSV file is written."""

    delimiter: str = ","
    encoding: str = "utf-8"
    commentChar: str = ""  # noqa: N815 - the standard's word
    quoteChar: str = '"'  # noqa: N815


class Field(_Part):
    """One column of a table."""

    name: str
    type: Literal["number", "integer", "boolean", "string"]
    title: str = ""
    description: str = ""
    unit: str = ""
    constraints: Constraints = Constraints()
    missingValues: tuple[str, ...] | None = None  # noqa: N815
    trueValues: tuple[Word, ...] = ("true", "1")  # noqa: N815
    falseValues: tuple[Word, ...] = ("false", "0")  # noqa: N815
    decimalChar: str = "."  # noqa: N815
    groupChar: str = ""  # noqa: N815
    centre: float | None = described(None, description="public guess of the mean; by default from the bounds")
    scale: float | None = described(None, gt=0.0, description="and of the sd")
    shape: Literal["normal", "skewed", "count"] = described("normal", description="of simulated entries")
    share: float | dict[str, float] | None = described(None, description="of ones, or of each level")
    fill: float | str | None = described(None, description="stands for a missing entry")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        low, high, levels = self.constraints.minimum, self.constraints.maximum, self.levels
        if low is not None and high is not None and not low < high:
            raise ValueError(f"constraints: minimum: {low:g} must be less than maximum, {high:g}")
        if levels and (self.type != "string" or len(levels) < 2 or len(set(levels)) < len(levels)):
            raise ValueError(f"constraints: enum: {shown(levels)} must be two or more levels of a string")
        if isinstance(self.share, dict) and set(map(text_of, self.share)) != set(levels):
            raise ValueError(f"share: must have the levels {', '.join(levels)}")
        if isinstance(self.share, float | int) and not (self.type == "boolean" and 0.0 < self.share < 1.0):
            raise ValueError(f"share: {shown(self.share)} must be in (0, 1), of the ones of a boolean")
        if self.fill is not None and levels and text_of(self.fill) not in levels:
            raise ValueError(f"fill: {shown(self.fill)} must be one of the levels {', '.join(levels)}")
        if self.fill is not None and self.type != "string" and isinstance(self.fill, str):
            raise ValueError(f"fill: {shown(self.fill)} must be a number")
        return self

    @property
    def levels(self) -> tuple[str, ...]:
        """Return the levels of a category as texts; () for other fields."""
        return tuple(map(text_of, self.constraints.enum or ()))

    @property
    def standard(self) -> tuple[float, float]:
        """Return centre and scale of a number: as given, else from its bounds.

        Raises DpmcError if it has neither.
        """
        low, high = self.constraints.minimum, self.constraints.maximum
        if self.type == "boolean":
            return 0.0 if self.centre is None else self.centre, self.scale or 1.0
        if low is None or high is None:
            if self.centre is None or self.scale is None:
                raise DpmcError(f"codebook: {self.name}: needs centre and scale, or minimum and maximum")
            return self.centre, self.scale
        is_low = self.shape != "normal"
        centre, scale = (
            low + (high - low) * (LOW if is_low else 0.5),
            (high - low) * (LOW if is_low else 1.0 / WITHIN),
        )
        return centre if self.centre is None else self.centre, self.scale or scale

    def declared(self, missing: Sequence[str]) -> Declared:
        """Return how entries are read; `missing` are the table's words for a missing one."""
        return Declared(
            type=self.type,
            levels=self.levels,
            fill=text_of(self.fill) if self.levels and self.fill is not None else self.fill,
            true=tuple(map(text_of, self.trueValues)),
            false=tuple(map(text_of, self.falseValues)),
            missing=tuple(missing if self.missingValues is None else self.missingValues),
            decimal=self.decimalChar,
            group=self.groupChar,
            minimum=self.constraints.minimum,
            maximum=self.constraints.maximum,
        )


class Codebook(_Part):
    """What is public about a table, by field."""

    name: str = ""
    title: str = ""
    description: str = ""
    person: str | None = described(None, description="column that says whose row it is")
    missingValues: tuple[str, ...] = USUALLY_MISSING  # noqa: N815
    dialect: Table = Table()
    fields: tuple[Field, ...] = described(min_length=1)

    @model_validator(mode="after")
    def _named(self) -> Self:
        names = [same_name(field.name).strip() for field in self.fields]
        for name in names:
            if names.count(name) > 1 or not name or name == "intercept":
                raise ValueError(f"fields: {shown(name)} must be a name of its own, and not intercept")
        if self.person is not None and same_name(self.person) not in names:
            raise ValueError(f"person: {shown(self.person)} must be one of the fields")
        return self

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a codebook from a YAML or JSON file; raise DpmcError naming file, field and rule."""
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
            content = yaml.safe_load(text)
        except FileNotFoundError:
            raise DpmcError(f"{path}: no such file") from None
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise DpmcError(f"{path}: cannot be read ({' '.join(str(error).split())})") from None
        return cls.of(content, str(path))

    @classmethod
    def of(cls, content: Any, where: str = "codebook") -> Self:
        """Return a codebook from a mapping, as a file has it; raise DpmcError for a wrong one."""
        if not isinstance(content, Mapping):
            raise DpmcError(f"{where}: {shown(content)} must be a mapping with fields")
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            first = error.errors()[0]
            raise DpmcError(": ".join([where, *_place(content, first["loc"]), _rule(first)])) from None

    def field(self, name: str) -> Field:
        """Return a field by name; raise DpmcError, with the fields, for an unknown one."""
        for field in self.fields:
            if same_name(field.name).strip() == same_name(name).strip():
                return field
        known = ", ".join(field.name for field in self.fields)
        raise DpmcError(f"codebook: {shown(name)}: is no field; there are {known}")

    def declared(self, name: str) -> Declared:
        """Return how the entries of a field are read."""
        return self.field(name).declared(self.missingValues)

    @property
    def file(self) -> Dialect:
        """Return how a CSV file of the table is written."""
        table = self.dialect
        return Dialect(table.delimiter, table.encoding, table.commentChar, table.quoteChar)

    def design(self, predictors: Iterable[str]) -> dict[str, Any]:
        """Return the arguments of a regression that say the same of these predictors, by name."""
        fields = [self.field(name) for name in predictors]
        numbers = {field.name: field.standard for field in fields if field.type != "string"}
        levels: dict[str, Any] = {}
        for field in fields:
            if field.type == "string":
                if not field.levels:
                    raise DpmcError(
                        f"codebook: {field.name}: a string needs constraints: enum as a predictor"
                    )
                levels[field.name] = field.share or list(field.levels)
        return {
            "predictors": numbers,
            "binary": {f.name: float(f.share or 0.5) for f in fields if f.type == "boolean"},  # type: ignore[arg-type]
            "levels": levels,
            "fills": {field.name: field.fill for field in fields if field.fill is not None},
            "shapes": {
                f.name: f.shape for f in fields if f.type in ("number", "integer") and f.shape != "normal"
            },
        }

    def json(self) -> str:  # type: ignore[override]
        """Return the codebook as JSON text, without what has its default."""
        return json.dumps(self.model_dump(mode="json", exclude_defaults=True), sort_keys=True)


def template(names: Sequence[str], name: str = "") -> str:
    """Return a codebook to fill in for columns of these names, as YAML: nothing else of the table is used."""
    lines = [
        "# A codebook: what is public about a table, and known without looking at its rows.",
        "# For each field choose a type, and say what you know: https://datapackage.org/standard/table-schema/",
        "#   number, integer: constraints: {minimum: 0, maximum: 100}, or centre and scale; shape: skewed or count",
        "#   boolean: trueValues, falseValues, share (of ones)",
        "#   string: constraints: {enum: [none, public, private]}; fill: none",
        f"name: {json.dumps(name)}",
        'missingValues: ["", "NA"]',
        "# person: id    # the column that says whose row it is",
        "fields:",
        *(f"  - {{name: {json.dumps(same_name(one), ensure_ascii=False)}, type: number}}" for one in names),
    ]
    return "\n".join(lines) + "\n"


def _place(content: Any, location: Sequence[str | int]) -> list[str]:
    """Return the keys of a place in a codebook, fields by their names."""
    found: list[str] = []
    for key in location:
        try:
            content = content[key]
        except (KeyError, IndexError, TypeError):
            content = None
        if isinstance(key, int) and isinstance(content, Mapping) and "name" in content:
            found.append(str(content["name"]))
        elif not (
            isinstance(key, str) and (key in ("str", "int", "float") or key.startswith("function-before"))
        ):  # members of a union
            found.append(str(key))
    return found


def _rule(error: Mapping[str, Any]) -> str:
    """Return an error of pydantic as a rule."""
    if error["type"] == "extra_forbidden":
        return "is no key of a codebook"
    text = str(error["msg"]).removeprefix("Value error, ")
    return text if error["type"] in ("value_error", "missing") else f"{shown(error['input'])}: {text}"
