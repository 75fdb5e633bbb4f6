"""What a wrong public centre or scale costs noisy scores: the table of `docs/how-to/plan.md`.

    python benchmarks/wrong_scales.py [--sets 10] [--n 5000 50000]

Four normal predictors with coefficients of 0.3, ε = 1, δ = 0.1/n, prior sd 10, the default. Centre or scale
of the first is declared wrongly. Printed is the median half width of its coefficient over that with the right
ones, in the table's units, and in brackets the median of the others; of a small residual sd, in units of it.
"""

import argparse
from functools import cache

import numpy as np
from scores import method_of, posterior_of
from threadpoolctl import threadpool_limits

import dpmc
from dpmc.models.regression import Regression

KINDS = {
    "linear": dpmc.LinearRegression,
    "logistic": dpmc.LogisticRegression,
    "Poisson": dpmc.PoissonRegression,
}
SIZE = 0.3  #: of coefficients
CENTRES, SCALES = (3.0, 10.0, 100.0), (3.0, 10.0, 100.0, 0.1, 0.01)  #: true ones, in declared scales
RESIDUALS = (0.1, 0.01)  #: true residual sd, in the outcome's declared scale


def model_of(way: str, centre: float, scale: float) -> Regression:
    """Return the model that is told; the true centre and scale of the first predictor are given."""
    predictors = {"x1": (-centre / scale, 1.0 / scale)} | {f"x{i}": (0.0, 1.0) for i in (2, 3, 4)}
    return KINDS[way]("y", predictors, **({"sd": None} if way == "linear" else {}))


@cache
def widths(way: str, n: int, sets: int, centre: float, scale: float, residual: float = 1.0) -> np.ndarray:
    """Return median posterior sds (4,) of slopes, in the table's units."""
    model, found = model_of(way, centre, scale), []
    for number in range(sets):
        g = np.random.default_rng(number)
        x = g.standard_normal((n, 4))
        eta = SIZE * x.sum(axis=1)
        y = eta + residual * g.standard_normal(n) if way == "linear" else model.family.draw(g, eta)
        posterior = posterior_of(model, method_of(1.0, n), np.column_stack([y, x]), g, integers=False)
        found.append(np.sqrt(np.diag(posterior.covariance()))[1:5] / residual)
    return np.median(found, axis=0) * [scale, 1.0, 1.0, 1.0]


def shown(ratio: np.ndarray) -> str:
    """Return the ratio of the first slope, and the median of the others in brackets."""
    return f"{ratio[0]:.2g} ({np.median(ratio[1:]):.2g})"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--sets", type=int, default=10, help="data sets, of which medians are taken")
    parser.add_argument("--n", type=int, nargs="+", default=[5000, 50_000], help="rows")
    given = parser.parse_args()
    wrong = [(f"true scale {scale:g}", 0.0, scale, 1.0) for scale in SCALES]
    wrong += [(f"centre off by {centre:g} scales", centre, 1.0, 1.0) for centre in CENTRES]
    wrong += [(f"residual sd {residual:g}", 0.0, 1.0, residual) for residual in RESIDUALS]
    print(f"| what is wrong | {' | '.join(f'{n:,}: ' + ', '.join(KINDS) for n in given.n)} |")
    for name, *told in wrong:
        ways = ("linear",) if told[-1] < 1.0 else KINDS
        cells = []
        for n in given.n:
            with threadpool_limits(1):
                right = {way: widths(way, n, given.sets, 0.0, 1.0) for way in ways}
                cells.append(", ".join(shown(widths(way, n, given.sets, *told) / right[way]) for way in ways))
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
