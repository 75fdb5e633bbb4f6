"""Kinds of numbers of a clipping experiment: samplers without privacy under growing clip bounds.

A case is an algorithm on a model of the experiment; `model` limits them to models with this id.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from dpmc.reports.claims.kinds import Cases, Kind, Several
from dpmc.reports.claims.numbers import INF, Numbers
from dpmc.studies import pinned_hyperparameters

CLIPPED, DISTANCE, CONVERGENCE = "ratio_clip_fraction", "mmd", "rhat_max"


class Experiment(Kind):
    """A number for each algorithm and model of the experiment."""

    model: str = ""  # id of a model; "": every model

    def cases(self, numbers: Numbers) -> Cases:
        """Return the number of every algorithm on every model."""
        return {
            f"{algorithm}, {label}": self.number_of(numbers, label, by_bound)
            for label, algorithm, by_bound in self.parts(numbers)
        }

    def parts(self, numbers: Numbers) -> Iterator[tuple[str, str, dict[float, str]]]:
        """Yield model label, algorithm, and clip bound -> method."""
        for label in numbers.clipping_models(self.model):
            for algorithm, by_bound in numbers.clip_bounds(label).items():
                yield label, algorithm, by_bound

    def number_of(self, numbers: Numbers, model: str, by_bound: dict[float, str]) -> float | None:
        """Return the number of one case."""
        raise NotImplementedError


def increase(numbers: Numbers, model: str, by_bound: dict[float, str], bound: float) -> float | None:
    """Return the median MMD at a bound less that at the largest."""
    here = numbers.median(model, by_bound[bound], INF, DISTANCE)
    largest = numbers.median(model, by_bound[max(by_bound)], INF, DISTANCE)
    return None if here is None or largest is None else here - largest


class AtLargestBound(Experiment):
    """A metric's median at the largest clip bound."""

    number: Literal["at-largest-bound"]
    metric: str

    def number_of(self, numbers: Numbers, model: str, by_bound: dict[float, str]) -> float | None:
        """Return the number of one case."""
        return numbers.median(model, by_bound[max(by_bound)], INF, self.metric)


class MostIncrease(Experiment):
    """The largest increase of the median MMD over that at the largest bound, among some bounds.

    These are the `last` bounds below the largest (0: all) of at least `least` with a median fraction clipped
    below `clipped`.
    """

    number: Literal["most-increase"]
    least: float = 0.0
    last: int = 0
    clipped: float = 2.0

    def number_of(self, numbers: Numbers, model: str, by_bound: dict[float, str]) -> float | None:
        """Return the number of one case."""
        found = []
        for bound in sorted(by_bound)[:-1][-self.last :]:
            fraction = numbers.median(model, by_bound[bound], INF, CLIPPED)
            rise = increase(numbers, model, by_bound, bound)
            if bound >= self.least and fraction is not None and fraction < self.clipped and rise is not None:
                found.append(rise)
        return max(found, default=None)


class LateBounds(Experiment):
    """The share of bounds without convergence in the lower half, minus that in the upper half.

    Chains that never moved have no R-hat and count as not converged.
    """

    number: Literal["late-bounds"]
    limit: float

    def number_of(self, numbers: Numbers, model: str, by_bound: dict[float, str]) -> float | None:
        """Return the number of one case."""
        late, known = [], False
        for _, method in sorted(by_bound.items()):
            if numbers.values(model, method, INF, "iterations"):
                rhat = numbers.median(model, method, INF, CONVERGENCE)
                late.append(rhat is None or rhat >= self.limit)
                known = known or rhat is not None
        half = len(late) // 2
        return (sum(late[:half]) - sum(late[-half:])) / half if half and known else None


class ChosenBound(Experiment):
    """The increase of the MMD at the largest bound not above that of a method of the comparison."""

    number: Literal["chosen-bound"]
    methods: dict[str, tuple[str, str]]  # algorithm -> (method of the comparison, name of its clip bound)

    def cases(self, numbers: Numbers) -> Cases:
        """Return the number of every algorithm on every model; None if the comparison lacks it."""
        found: Cases = {}
        for label, algorithm, by_bound in self.parts(numbers):
            model = numbers.study.models[label].model
            method, key = self.methods[algorithm]
            name, number = f"{method}, {model}", None
            if method in numbers.study.methods and model in numbers.study.models:
                chosen = float(pinned_hyperparameters(numbers.study, model, method).values[key])
                below = [bound for bound in by_bound if bound <= chosen]
                name += f", bound {chosen:g}"
                number = increase(numbers, label, by_bound, max(below)) if below else None
            found[name] = number
        return found


class InGap(Experiment):
    """The share of the runs of a model whose fraction clipped lies between two limits."""

    number: Literal["in-gap"]
    low: float
    high: float

    def cases(self, numbers: Numbers) -> Cases:
        """Return the share of the model's runs, all algorithms and bounds together."""
        values = [
            value
            for label, _, by_bound in self.parts(numbers)
            for method in by_bound.values()
            for value in numbers.values(label, method, INF, CLIPPED)
        ]
        inside = sum(self.low < value < self.high for value in values)
        return {self.model: inside / len(values) if values else None}


class StrayBounds(Experiment):
    """The share of the `last` bounds (0: all) that have a run `far` above the largest bound's median MMD."""

    number: Literal["stray-bounds"]
    far: float
    last: int = 0

    def number_of(self, numbers: Numbers, model: str, by_bound: dict[float, str]) -> float | None:
        """Return the number of one case."""
        largest = numbers.median(model, by_bound[max(by_bound)], INF, DISTANCE)
        bounds = sorted(by_bound)[-self.last :]
        runs = [numbers.values(model, by_bound[bound], INF, DISTANCE) for bound in bounds]
        if largest is None or not all(runs):
            return None
        return sum(max(values) > largest + self.far for values in runs) / len(runs)


class OverFree(Kind):
    """The ratio of the least median MMD of private methods to that of samplers without privacy or clipping.

    `less`: the difference instead of the ratio. `free`: the model id of the samplers without privacy;
    default: the same model.
    """

    number: Literal["over-free"]
    models: Several
    methods: Several
    at: Literal["smallest", "largest"]
    free: str = ""
    less: bool = False

    def cases(self, numbers: Numbers) -> Cases:
        """Return the number of every model."""
        found: Cases = {}
        for model in self.models:
            grid = sorted({e for method in self.methods for e in numbers.epsilons(model, method)}, key=float)
            epsilon = (grid[0] if self.at == "smallest" else grid[-1]) if grid else ""
            private = [numbers.median(model, method, epsilon, DISTANCE) for method in self.methods]
            free = [
                numbers.median(label, by_bound[max(by_bound)], INF, DISTANCE)
                for label in numbers.clipping_models(self.free or model)
                for by_bound in numbers.clip_bounds(label).values()
            ]
            above, below = ([value for value in part if value is not None] for part in (private, free))
            known = bool(above and below) and min(below) > 0.0
            if known:
                found[model] = min(above) - min(below) if self.less else min(above) / min(below)
            else:
                found[model] = None
        return found
