"""Kinds of numbers over several methods, models or runs at once."""

from __future__ import annotations

from typing import Literal

from dpmc.reports.claims.kinds import Cases, Cells, Compared, Falling, Over, reduced
from dpmc.reports.claims.numbers import Numbers


class OfAll(Cells):
    """The largest or smallest median over all models, methods and budgets together, or their range."""

    number: Literal["of-all"]
    over: Over = "largest"

    def cases(self, numbers: Numbers) -> Cases:
        """Return the one number."""
        medians = [
            numbers.median(model, method, epsilon, self.metrics[0])
            for model in self.models
            for method in self.methods
            for epsilon in self.grid(numbers, model, method)
        ]
        name = self.models[0] if len(self.models) == 1 else f"{len(self.models)} models"
        return {name: reduced(self.over, medians)}


class Inconsistent(Compared):
    """The margin by which a method's ratio is `good` on one model and `bad` on another: above 1 if it is.

    The smaller of two quotients: `good` over the least ratio, and the largest ratio over `bad`.
    """

    number: Literal["inconsistent"]
    good: float
    bad: float

    def cases(self, numbers: Numbers) -> Cases:
        """Return the number of every method."""
        found: Cases = {}
        for method in self.methods:
            ratios = [self.ratio(numbers, model, method, self.metrics[0]) for model in self.models]
            known = [ratio for ratio in ratios if ratio]
            complete = known and len(known) == len(ratios)
            found[method] = min(self.good / min(known), max(known) / self.bad) if complete else None
        return found


class Extreme(Compared):
    """The least or largest mean ratio of a method over the models."""

    number: Literal["over-models"]
    which: Literal["smallest", "largest"]

    def cases(self, numbers: Numbers) -> Cases:
        """Return one number for each method."""
        found: Cases = {}
        for method in self.methods:
            ratios = [self.ratio(numbers, model, method, self.metrics[0]) for model in self.models]
            found[f"{method}, {self.which} ratio"] = reduced(self.which, ratios)
        return found


class FirstReached(Compared):
    """The ratio of the least of `to` to a method, by the first of the metrics that the method has."""

    number: Literal["first-reached"]

    def cases(self, numbers: Numbers) -> Cases:
        """Return the number of every model and method."""
        found: Cases = {}
        for model in self.models:
            for method in self.methods:
                [epsilon] = self.grid(numbers, model, method)
                values = [numbers.median(model, method, epsilon, metric) for metric in self.metrics]
                metric, one = next(
                    ((m, v) for m, v in zip(self.metrics, values, strict=True) if v is not None), ("", None)
                )
                known = [numbers.median(model, other, epsilon, metric) for other in self.to]
                least = reduced("smallest", known)
                found[f"{model}, {method}"] = least / one if one and least is not None else None
        return found


class Share(Cells):
    """The share of all runs of a model's methods at the budgets `at` whose value is above `limit`."""

    number: Literal["share"]
    limit: float

    def cases(self, numbers: Numbers) -> Cases:
        """Return the share of every model."""
        found: Cases = {}
        for model in self.models:
            runs = [
                value
                for method in self.methods
                for epsilon in self.grid(numbers, model, method)
                for metric in self.metrics
                for value in numbers.values(model, method, epsilon, metric)
            ]
            found[model] = sum(value > self.limit for value in runs) / len(runs) if runs else None
        return found


class Models(Falling):
    """The share of the models on which a method's median falls by more than `errors` standard errors."""

    number: Literal["models-that-fall"]
    errors: float

    def cases(self, numbers: Numbers) -> Cases:
        """Return the share of every method."""
        found: Cases = {}
        for method in self.methods:
            falls = [self.number_of(numbers, model, method, self.metrics[0]) for model in self.models]
            known = [one for one in falls if one is not None]
            found[method] = sum(one > self.errors for one in known) / len(known) if known else None
        return found


class AboveFloor(Cells):
    """The least median of the methods at the budgets `at` minus the median of the exact samples."""

    number: Literal["above-floor"]

    def cases(self, numbers: Numbers) -> Cases:
        """Return the distance of every model."""
        found: Cases = {}
        for model in self.models:
            floor = numbers.median(model, "baseline", "", self.metrics[0])
            best = best_of(numbers, model, self)
            found[model] = best - floor if best is not None and floor is not None else None
        return found


class BestEnds(Cells):
    """The least median of the methods at the budgets `at` over the least at `to_at`."""

    number: Literal["best-over-best"]
    to_at: str

    def cases(self, numbers: Numbers) -> Cases:
        """Return the ratio of every model and budget."""
        found: Cases = {}
        for model in self.models:
            below = best_of(numbers, model, self.model_copy(update={"at": (self.to_at,)}))
            for epsilon in self.at:
                above = best_of(numbers, model, self.model_copy(update={"at": (epsilon,)}))
                found[f"{model}, ε = {epsilon}"] = above / below if above is not None and below else None
        return found


def best_of(numbers: Numbers, model: str, cells: Cells) -> float | None:
    """Return the least median of the methods at the budgets of `cells`."""
    values = [
        numbers.median(model, method, epsilon, cells.metrics[0])
        for method in cells.methods
        for epsilon in cells.grid(numbers, model, method)
    ]
    return reduced("smallest", values)
