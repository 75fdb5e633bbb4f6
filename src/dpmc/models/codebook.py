"""Codebooks: what is public about a table, written by its holder before anyone looks at rows.

A codebook is a YAML or JSON file in the words of the Table Schema standard (`fields` with `name`, `type`,
`constraints`, …), with some of our own: `centre`, `scale`, `shape`, `share`, `fill`, `person`, `unit`. It
decides how rows are read, what predictors are scaled by, and what is simulated. One made from the rows is no
codebook: whatever depends on them is covered by no ε.
"""

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator
from pydantic import Field as described

from dpmc.common.errors import DpmcError
from dpmc.common.values import shown
from dpmc.models.columns import OF_DATES, USUALLY_MISSING, Coding, Declared, Dialect, same_name, text_of

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
Name = Annotated[str, AfterValidator(same_name)]  #: of a column


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Constraints(_Part):
    """What entries of a field are within; others are odd."""

    minimum: float | None = None
    maximum: float | None = None
    enum: tuple[Word, ...] | None = None
    """Levels of a category, the first without a coefficient."""
    required: bool = False


class CsvDialect(_Part):
    """How a CSV file is written."""

    delimiter: str = described(default=",", pattern=r"^[^\r\n ]$")
    encoding: str = "utf-8"
    commentChar: str = ""
    quoteChar: str = described(default='"', pattern=r"^[^\r\n ]?$")

    @model_validator(mode="after")
    def _differ(self) -> Self:
        if self.delimiter == self.quoteChar:
            raise ValueError(f"delimiter: {shown(self.delimiter)} must not be quoteChar, too")
        return self


class Field(_Part):
    """One column of a table."""

    name: Name
    type: Literal["number", "integer", "boolean", "string"]
    title: str = ""
    description: str = ""
    unit: str = ""
    constraints: Constraints = Constraints()
    missingValues: tuple[str, ...] | None = None
    trueValues: tuple[Word, ...] = ("true", "1")
    falseValues: tuple[Word, ...] = ("false", "0")
    decimalChar: str = "."
    groupChar: str = ""
    centre: float | None = described(
        default=None, description="public guess of the mean; by default from the bounds"
    )
    scale: float | None = described(default=None, gt=0.0, description="and of the sd")
    shape: Literal["normal", "skewed", "count"] = described(
        default="normal", description="of simulated entries"
    )
    share: float | dict[Word, float] | None = described(default=None, description="of ones, or of each level")
    fill: float | str | None = described(default=None, description="stands for a missing entry")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        low, high, levels = self.constraints.minimum, self.constraints.maximum, self.levels
        if self.constraints.enum is not None and (
            self.type != "string" or len(levels) < 2 or len(set(levels)) < len(levels)
        ):
            raise ValueError(f"constraints: enum: {shown(levels)} must be two or more levels of a string")
        words = {
            "minimum": low,
            "maximum": high,
            "shape": None if self.shape == "normal" else self.shape,
            **({"centre": self.centre, "scale": self.scale} if self.type == "string" else {}),
        }
        for name in words if self.type in ("boolean", "string") else ():
            if words[name] is not None:
                raise ValueError(f"{name}: is no word for a {self.type}")
        self._numbers_fit()
        true, false = (
            [text_of(word).casefold() for word in words] for words in (self.trueValues, self.falseValues)
        )
        for word in set(true) & set(false):
            raise ValueError(f"{shown(word)} must not be both true and false")
        if isinstance(self.share, dict):
            if tuple(map(text_of, self.share)) != levels or min(self.share.values()) <= 0.0:
                raise ValueError(f"share: must have the levels {', '.join(levels)}, each above 0")
        elif self.share is not None and not (self.type == "boolean" and 0.0 < self.share < 1.0):
            raise ValueError(f"share: {shown(self.share)} must be in (0, 1), of the ones of a boolean")
        return self

    def _numbers_fit(self) -> None:
        """Raise ValueError for bounds, a centre or a fill that cannot be those of the field."""
        low, high, levels = self.constraints.minimum, self.constraints.maximum, self.levels
        if low is not None and high is not None and not low < high:
            raise ValueError(f"constraints: minimum: {low:g} must be less than maximum, {high:g}")
        inside = {"centre": self.centre, "fill": None if self.type == "string" else self.fill}
        for name, value in inside.items():
            if isinstance(value, str):
                raise ValueError(f"{name}: {shown(value)} must be a number")
            if value is not None and not (low is None or low <= value) & (high is None or value <= high):
                raise ValueError(f"{name}: {value:g} must be between minimum and maximum")
        whole = {"minimum": low, "maximum": high, "fill": self.fill} if self.type == "integer" else {}
        for name, value in whole.items():
            if isinstance(value, float) and value != np.floor(value):
                raise ValueError(f"{name}: {value:g} must be a whole number, of an integer")
        centre = self.centre
        if self.shape != "normal" and centre is not None and centre <= self._least(centre, 1.0):
            raise ValueError(f"centre: {centre:g} must be above the least, of a {self.shape} field")
        if self.fill is not None and levels and text_of(self.fill) not in levels:
            raise ValueError(f"fill: {shown(self.fill)} must be one of the levels {', '.join(levels)}")
        if self.fill is not None and self.constraints.required:
            raise ValueError("fill: is of no use where a missing entry is odd (constraints: required)")

    @property
    def levels(self) -> tuple[str, ...]:
        """Return the levels of a category as texts; () for other fields."""
        return tuple(map(text_of, self.constraints.enum or ()))

    @property
    def is_text(self) -> bool:
        """Return whether entries are texts without levels and words for true and false, so no numbers."""
        default = (Field.model_fields["trueValues"].default, Field.model_fields["falseValues"].default)
        return self.type == "string" and not self.levels and (self.trueValues, self.falseValues) == default

    @property
    def standard(self) -> tuple[float, float] | None:
        """Return centre and scale of a number: as given, else from its bounds; None: it has neither."""
        low, high = self.constraints.minimum, self.constraints.maximum
        centre, scale = (0.0, 1.0) if self.type == "boolean" else (None, None)
        if low is not None and high is not None:
            centre = low + (high - low) * (LOW if self.shape != "normal" else 0.5)
            scale = (high - low) * (LOW if self.shape != "normal" else 1.0 / WITHIN)
        centre, scale = centre if self.centre is None else self.centre, self.scale or scale
        return None if centre is None or scale is None else (centre, scale)

    def _least(self, centre: float, scale: float) -> float:
        """Return what a skewed or counted number is above: its minimum, else what fits centre and scale."""
        if self.constraints.minimum is not None:
            return self.constraints.minimum
        return 0.0 if self.shape == "count" else centre - scale

    def drawn(self, normal: np.ndarray, given: tuple[float, float]) -> np.ndarray:
        """Return simulated entries (n,) of a number, of standard normal ones, of its shape and bounds.

        Skewed ones are log-normal above their minimum. `given` are centre and scale if the field has none.
        """
        centre, scale = self.standard or given
        x, bounds = centre + scale * normal, self.constraints
        if self.shape != "normal":
            least = self._least(centre, scale)
            sd = np.sqrt(np.log1p((scale / (centre - least)) ** 2))
            x = least + (centre - least) * np.exp(sd * normal - 0.5 * sd**2)
        if self.type == "integer" or self.shape == "count":
            x = np.round(x)
        low, high = bounds.minimum, bounds.maximum
        return np.clip(x, -np.inf if low is None else low, np.inf if high is None else high)

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
            required=self.constraints.required,
        )


class Codebook(_Part):
    """What is public about a table, by field; its keys: docs/reference/codebook.md.

    Give its file, or a mapping, wherever a codebook is asked for: `dpmc.fit(formula, table, "people.yaml")`.
    `Codebook.read(path)` reads a file, `Codebook.of(mapping)` takes a mapping; both raise DpmcError naming
    field and rule. `codebook.field(name)` returns a field, `codebook.coding(columns)` how columns are read,
    `codebook.only(columns)` the mapping of some of them. Methods named `model_…` are pydantic's.

    Attributes are fields, in the table's order, each with name, type, constraints and other keys; name, title
    and description of the table; person, the column that says whose a row is, or None; missingValues, texts
    that say that an entry is missing; dialect, how a CSV file is written.
    """

    model_config = ConfigDict(json_schema_extra={"description": "What is public about a table, by field."})

    name: str = ""
    title: str = ""
    description: str = ""
    person: Name | None = described(default=None, description="column that says whose row it is")
    missingValues: tuple[str, ...] = USUALLY_MISSING
    dialect: CsvDialect = CsvDialect()
    fields: tuple[Field, ...] = described(min_length=1)

    @model_validator(mode="after")
    def _named(self) -> Self:
        names = [field.name for field in self.fields]
        for name in names:
            if names.count(name) > 1 or not name or name == "intercept":
                raise ValueError(f"fields: {shown(name)} must be a name of its own, and not intercept")
        if self.person is not None and self.person not in names:
            raise ValueError(f"person: {shown(self.person)} must be one of the fields")
        if self.person is not None and self.field(self.person).levels:
            raise ValueError(f"person: {shown(self.person)} must be no category")
        return self

    @classmethod
    def given(cls, book: Any) -> Self:
        """Return a codebook that is given as one, as a mapping, or as the path of a file."""
        if isinstance(book, cls):
            return book
        return cls.read(book) if isinstance(book, str | Path) else cls.of(book)

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
            if field.name == same_name(name):
                return field
        names = [field.name for field in self.fields]
        near = "".join(f"; is it {each}?" for each in difflib.get_close_matches(name, names, 1))
        raise DpmcError(f"codebook: {shown(name)}: is no field; there are {', '.join(names)}{near}")

    def declared(self, name: str) -> Declared:
        """Return how the entries of a field are read."""
        return self.field(name).declared(self.missingValues)

    def coding(self, columns: Iterable[str], outcome: str | None = None) -> Coding:
        """Return how a table's columns are read; no fill stands for a missing `outcome`."""
        declared = {name: self.declared(name) for name in [*columns, *filter(None, [self.person])]}
        if outcome is not None:
            declared[outcome] = replace(declared[outcome], fill=None, required=True)
        table = self.dialect
        file = Dialect(table.delimiter, table.encoding, table.commentChar, table.quoteChar)
        return Coding(declared, file, self.person)

    def design(self, predictors: Iterable[str]) -> dict[str, Any]:
        """Return the arguments of a regression that say the same of these predictors, by name."""
        fields = [self.field(name) for name in predictors]
        numbers = [field for field in fields if field.type != "string"]
        for field in fields:
            if field.type == "string" and not field.levels:
                raise DpmcError(f"codebook: {field.name}: a string needs constraints: enum as a predictor")
        return {
            "predictors": {field.name: field.standard for field in numbers},
            "binary": {field.name: field.share or 0.5 for field in numbers if field.type == "boolean"},
            "levels": {field.name: field.share or field.levels for field in fields if field.levels},
            "fills": {field.name: field.fill for field in fields if field.fill is not None},
        }

    def only(self, columns: Iterable[str]) -> dict[str, Any]:
        """Return the codebook of these columns and the person's, as a mapping without defaults."""
        named = [self.field(name) for name in [*columns, *filter(None, [self.person])]]
        kept = tuple(field for field in self.fields if field in named)
        return self.model_copy(update={"fields": kept}).model_dump(mode="json", exclude_defaults=True)


def template(names: Sequence[str], name: str = "", delimiter: str = ",") -> str:
    """Return a codebook to fill in for columns of these names, as YAML: no row is used."""
    lines = [
        "# A codebook: what is public about a table, and known without looking at its rows.",
        "# For each field choose a type, and say what you know: https://datapackage.org/standard/table-schema/",
        "#   number, integer: constraints: {minimum: 0, maximum: 100}, or centre and scale; shape: skewed",
        "#   boolean: trueValues, falseValues, share (of ones)",
        "#   string: constraints: {enum: [none, public, private]}; fill: none",
        "# If the names below are a first row, the file has no names, and this must not be published.",
        f"name: {json.dumps(name, ensure_ascii=False)}",
        *([] if delimiter == "," else [f"dialect: {{delimiter: {json.dumps(delimiter)}}}"]),
        'missingValues: ["", "NA"]',
        "# person: id    # the column that says whose row it is",
        "fields:",
        *(f"  - {{name: {json.dumps(same_name(one), ensure_ascii=False)}, type: number}}" for one in names),
    ]
    return "\n".join(lines) + "\n"


def _place(content: Any, location: Sequence[str | int]) -> list[str]:
    """Return the keys of a place in a codebook, fields by their names."""
    union = "str", "int", "float"  # members of one
    keys = [str(k) for k in location if k not in union and not str(k).startswith("function-before")]
    with suppress(AttributeError, LookupError, TypeError):  # of a field without a name
        if location[0] == "fields":
            keys[1] = " ".join(content["fields"][location[1]]["name"].split())
    return keys


def _rule(error: Mapping[str, Any]) -> str:
    """Return an error of pydantic as a rule."""
    if error["type"] == "extra_forbidden":
        return "is no key of a codebook"
    text = str(error["msg"]).removeprefix("Value error, ")
    text += f"; {OF_DATES}" if error["input"] in ("date", "datetime", "time", "year") else ""
    return text if error["type"] in ("value_error", "missing") else f"{shown(error['input'])}: {text}"
