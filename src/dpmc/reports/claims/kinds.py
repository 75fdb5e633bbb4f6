"""Kinds of numbers that decide a claim: comparisons of cells. Their fields are the keys of a file of claims.

Each kind returns a number for each of its cases; `holds` is the rule for a number that agrees with the claim.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict

from dpmc.common.streams import canonical_epsilon
from dpmc.reports.claims.numbers import Numbers

Cases = dict[str, float | None]  # name -> number, None if missing
Over = Literal["mean", "largest", "smallest", "range"]

TITLES = {"mmd": "MMD", "mean_error": "mean error", "covariance_error": "covariance error"}
COMPARED = {"below": operator.lt, "above": operator.gt, "at most": operator.le, "at least": operator.ge}


def comparison(text: str) -> Callable[[float], bool]:
    """Return the test of a text such as `below 1` or `between 0.8 and 1.25`; ValueError for another."""
    if match := re.fullmatch(r"between (\S+) and (\S+)", text):
        low, high = (float(bound) for bound in match.groups())
        return lambda number: low <= number <= high
    if match := re.fullmatch(rf"({'|'.join(COMPARED)}) (\S+)", text):
        compare, limit = COMPARED[match[1]], float(match[2])
        return lambda number: bool(compare(number, limit))
    raise ValueError(f"{text!r} is no comparison; {', '.join(COMPARED)} a number, or between two")


def _checked(text: str) -> str:
    comparison(text)
    return text


def _at(value: Any) -> Any:
    return value if isinstance(value, str) else tuple(canonical_epsilon(one) for one in value)


Several = Annotated[tuple[str, ...], BeforeValidator(lambda v: (v,) if isinstance(v, str) else v)]
At = Annotated[
    Literal["all", "smallest", "largest", "lower half", "upper half"] | tuple[str, ...], BeforeValidator(_at)
]
Holds = Annotated[str, AfterValidator(_checked)]


def reduced(over: Over, values: list[float | None]) -> float | None:
    """Return the geometric mean, largest, smallest or range of the known numbers; None for none."""
    known = [value for value in values if value is not None]
    if over == "mean":
        logs = [math.log(value) for value in known if value > 0.0]
        return math.exp(sum(logs) / len(logs)) if logs else None
    if not known:
        return None
    return {"largest": max(known), "smallest": min(known), "range": max(known) - min(known)}[over]


class Kind(BaseModel):
    """Base of all kinds; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    holds: Holds
    version: str = ""  # part of the cases' names, to distinguish them from those of another entry

    def cases(self, numbers: Numbers) -> Cases:
        """Return the number of every case."""
        raise NotImplementedError


class Cells(Kind):
    """A number for each model, method and metric, over the budgets `at`."""

    models: Several
    methods: Several
    metrics: Several
    at: At = "all"

    def cases(self, numbers: Numbers) -> Cases:
        """Return the number of every model, method and metric."""
        found = {}
        for model in self.models:
            for method in self.methods:
                for metric in self.metrics:
                    name = [model, method, *([TITLES.get(metric, metric)] if len(self.metrics) > 1 else [])]
                    found[", ".join(name)] = self.number_of(numbers, model, method, metric)
        return found

    def number_of(self, numbers: Numbers, model: str, method: str, metric: str) -> float | None:
        """Return the number of one case."""
        raise NotImplementedError

    def grid(self, numbers: Numbers, model: str, method: str) -> tuple[str, ...]:
        """Return the budgets `at` which a method is evaluated."""
        if isinstance(self.at, tuple):
            return self.at
        grid = tuple(numbers.epsilons(model, method))
        half = len(grid) // 2
        parts = {"smallest": grid[:1], "largest": grid[-1:], "lower half": grid[:half]}
        return parts.get(self.at, grid[-half:] if self.at == "upper half" else grid)


class Level(Cells):
    """The largest or smallest median over the budgets, or their range."""

    number: Literal["level"]
    over: Over = "largest"

    def number_of(self, numbers: Numbers, model: str, method: str, metric: str) -> float | None:
        """Return the number of one case."""
        grid = self.grid(numbers, model, method)
        return reduced(self.over, [numbers.median(model, method, one, metric) for one in grid])


class Compared(Cells):
    """A method's median or spread compared with the best or worst of `to`, at the same budget or `to_at`."""

    to: Several
    to_models: Several = ()  # (): the same model
    to_at: str = ""  # "": the same budget
    best: Literal["least", "most"] = "least"
    of: Literal["median", "spread"] = "median"
    over: Over = "mean"

    def pairs(self, numbers: Numbers, model: str, method: str, metric: str) -> Iterator[tuple[float, float]]:
        """Yield the method's number and the other's, at every budget at which all are known."""
        value = numbers.median if self.of == "median" else numbers.spread
        for epsilon in self.grid(numbers, model, method):
            one = value(model, method, epsilon, metric)
            others = [
                value(where, label, self.to_at or epsilon, metric)
                for where in self.to_models or (model,)
                for label in self.to
            ]
            known = [other for other in others if other is not None]
            if one is not None and known and len(known) == len(others):
                yield one, min(known) if self.best == "least" else max(known)

    def ratio(self, numbers: Numbers, model: str, method: str, metric: str) -> float | None:
        """Return the ratio of a method's number to the other's, over the budgets."""
        pairs = self.pairs(numbers, model, method, metric)
        return reduced(self.over, [one / other if other else None for one, other in pairs])


class Ratio(Compared):
    """The ratio of a method's number to the other's; `inverse`: the inverse ratio."""

    number: Literal["ratio"]
    inverse: bool = False

    def pairs(self, numbers: Numbers, model: str, method: str, metric: str) -> Iterator[tuple[float, float]]:
        """Yield numerator and denominator."""
        for one, other in super().pairs(numbers, model, method, metric):
            yield (other, one) if self.inverse else (one, other)

    def number_of(self, numbers: Numbers, model: str, method: str, metric: str) -> float | None:
        """Return the number of one case."""
        return self.ratio(numbers, model, method, metric)


class RatioOfMetrics(Cells):
    """The ratio of two metrics of a cell."""

    number: Literal["ratio-of-metrics"]
    to: str
    over: Over = "mean"

    def number_of(self, numbers: Numbers, model: str, method: str, metric: str) -> float | None:
        """Return the number of one case."""
        ratios = []
        for epsilon in self.grid(numbers, model, method):
            one, other = (numbers.median(model, method, epsilon, name) for name in (metric, self.to))
            ratios.append(one / other if one is not None and other else None)
        return reduced(self.over, ratios)


class Growth(Compared):
    """The mean ratio over the upper half of the budgets over that of the lower half."""

    number: Literal["growth"]

    def number_of(self, numbers: Numbers, model: str, method: str, metric: str) -> float | None:
        """Return the number of one case."""
        low, high = (
            self.model_copy(update={"at": part}).ratio(numbers, model, method, metric)
            for part in ("lower half", "upper half")
        )
        return high / low if low and high else None


class Gain(Cells):
    """The smallest gain over the budgets: a method's median minus the largest of those of `to` that ran."""

    number: Literal["gain"]
    to: Several

    def number_of(self, numbers: Numbers, model: str, method: str, metric: str) -> float | None:
        """Return the number of one case."""
        gains = []
        for epsilon in self.grid(numbers, model, method):
            one = numbers.median(model, method, epsilon, metric)
            others = [numbers.median(model, other, epsilon, metric) for other in self.to]
            known = [other for other in others if other is not None]
            if one is not None and known:
                gains.append(one - max(known))
        return min(gains, default=None)


class Ends(Cells):
    """The median at the smallest budget over that at the largest."""

    number: Literal["ends"]

    def number_of(self, numbers: Numbers, model: str, method: str, metric: str) -> float | None:
        """Return the number of one case."""
        grid = self.grid(numbers, model, method)
        if not grid:
            return None
        low, high = (numbers.median(model, method, one, metric) for one in (grid[0], grid[-1]))
        return low / high if low is not None and high else None


class Falling(Cells):
    """The decrease of the median from the smallest budget to the largest, in standard errors."""

    def number_of(self, numbers: Numbers, model: str, method: str, metric: str) -> float | None:
        """Return the number of one case."""
        grid = self.grid(numbers, model, method)
        if not grid:
            return None
        return in_errors(numbers, (model, method, grid[0], metric), (model, method, grid[-1], metric))


class Fall(Falling):
    """The decrease of `Falling`, one number for each model and method."""

    number: Literal["fall"]


class Apart(Cells):
    """The largest difference over the budgets between a method's median and another's, in standard errors."""

    number: Literal["apart"]
    to: str

    def number_of(self, numbers: Numbers, model: str, method: str, metric: str) -> float | None:
        """Return the number of one case."""
        grid = self.grid(numbers, model, method)
        found = [in_errors(numbers, (model, method, e, metric), (model, self.to, e, metric)) for e in grid]
        return max((abs(one) for one in found if one is not None), default=None)


Cell = tuple[str, str, str, str]  # model, method, epsilon, metric


def in_errors(numbers: Numbers, one: Cell, other: Cell) -> float | None:
    """Return the difference of two medians in standard errors of the difference."""
    above, below = numbers.median(*one), numbers.median(*other)
    error = math.hypot(numbers.error(*one), numbers.error(*other))
    return (above - below) / error if above is not None and below is not None and error > 0.0 else None
