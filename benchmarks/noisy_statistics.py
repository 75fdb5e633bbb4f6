"""Measure one noisy sum: tables of docs/reference/algorithms/noisy-statistics.md, beside `noisy_grid.py`.

    python benchmarks/noisy_statistics.py

Simulated rows; estimates are means of the second half of the draws. The last table is that of `prior_sd` in
docs/how-to/python.md. Ten minutes on one core.
"""

from typing import Any, NamedTuple

import numpy as np
from measuring import table

import dpmc

LEVEL = 0.9  #: of intervals
UNCLIPPED = 0.995  #: share of simulated rows that a clip bound does not clip, as in `dpmc.recommend`


class Fit(NamedTuple):
    """Maximum-likelihood estimate (d,) and standard errors (d,)."""

    estimate: np.ndarray
    error: np.ndarray


def names(d: int) -> list[str]:
    return [f"x{i}" for i in range(1, d)]


def maximum_likelihood(model: Any, rows: np.ndarray) -> Fit:
    """Return the fit of a regression without further parameters, by Newton's method."""
    z, y = model.design(rows), rows[:, 0]
    theta, step = np.zeros(model.dimension), np.ones(model.dimension)
    while np.abs(step).max() > 1e-9:
        eta = z @ theta
        variance = np.broadcast_to(model.outcome_variance(eta, theta), eta.shape)
        information = (z * variance[:, None]).T @ z
        step = np.linalg.solve(information, z.T @ (y - model.mean(eta)))
        theta = theta + step / max(1.0, np.abs(step).max())  # long steps overflow in Poisson regression
    return Fit(theta, np.sqrt(np.diag(np.linalg.inv(information))))


def simulate(model: Any, kind: str, theta: np.ndarray, n: int, generator: np.random.Generator) -> np.ndarray:
    """Return rows whose predictors have mean 0 and variance 1: normal, 0/1 with a quarter of ones, skew."""
    size = (n, model.dimension - 1)
    if kind == "normal":
        rows: np.ndarray = model.simulate(generator, theta, n)
        return rows
    if kind == "binary":
        x = ((generator.random(size) < 0.25) - 0.25) / np.sqrt(0.1875)
    else:
        x = generator.exponential(size=size) - 1.0
    z = np.column_stack([np.ones(n), x])
    return np.column_stack([model.draw(generator, z @ theta), x])


def clip_bound(model: Any, rows: np.ndarray) -> float:
    return float(np.quantile(np.sqrt((model.summaries(rows) ** 2).sum(axis=1)), UNCLIPPED))


def one_sum(model: Any, rows: np.ndarray, epsilon: float, clip: float, seed: int, m: int = 2000) -> Any:
    return dpmc.sample(
        model,
        rows,
        "noisy-statistics",
        epsilon=epsilon,
        hyperparameters={"clip": clip},
        iterations=m,
        seed=seed,
        progress=False,
    )


def without_noise(model: Any, rows: np.ndarray, seed: int) -> Any:
    """Run noisy statistics with ε so large that the noise is negligible, and nothing clipped."""
    longest = float(np.sqrt((model.summaries(rows) ** 2).sum(axis=1)).max())
    return one_sum(model, rows, 1e6, 1.001 * longest, seed)


def readme(seeds: int) -> None:
    """Print the distance from the exact posterior mean in the linear regression of README.md."""
    epsilon, setting = 2.0, {"tau": 1, "clip": 3, "proposal_sd": 0.09}
    tempered = dpmc.LinearRegression("income", ["age", "school"], tempering=250)
    model = dpmc.LinearRegression("income", ["age", "school"])
    theta = np.array([0.1, 0.2, 0.4])
    rows = tempered.simulate(np.random.default_rng(1), theta, 20_000)
    clip = clip_bound(model, model.simulate(np.random.default_rng(2), theta, 20_000))
    mean = model.posterior(rows, 1.0).centre
    found: dict[str, list[float]] = {"noisy-statistics": [], "dp-penalty": []}
    for seed in range(seeds):
        one = one_sum(model, rows, epsilon, clip, seed)
        chain = dpmc.sample(
            tempered, rows, epsilon=epsilon, hyperparameters=setting, seed=seed, progress=False
        )
        for name, tree in zip(found, (one, chain), strict=True):
            found[name].append(float(np.linalg.norm(dpmc.summary(tree)["mean"] - mean)))
    print(f"README's linear regression, ε = {epsilon}, {seeds} seeds: distance to the exact mean\n")
    quartiles = [[name, *np.quantile(of, [0.25, 0.5, 0.75]).tolist()] for name, of in found.items()]
    table(["method", "quartile", "median", "quartile"], quartiles)


def priors(sets: int) -> None:
    """Print half widths and coverage of 90 % intervals of a logistic regression by `prior_sd` and ε."""
    theta, epsilons = np.array([0.2, 0.5, -0.5]), (0.1, 0.2, 0.5, 1.0)
    print(f"\nHalf a {100 * LEVEL:.0f} % interval, and coverage, by prior_sd and ε; {sets} data sets\n")
    rows_of_table = []
    for sd in (1.0, 10.0):
        model = dpmc.LogisticRegression("y", names(3), prior_sd=sd, true_theta=theta)
        clip, cells = clip_bound(model, model.simulate(np.random.default_rng(99), theta, 5_000)), [sd]
        for epsilon in epsilons:
            halves, hits = [], []
            for seed in range(sets):
                rows = model.simulate(np.random.default_rng(seed), theta, 2_000)
                found = dpmc.summary(one_sum(model, rows, epsilon, clip, seed, m=1_500), level=LEVEL)
                halves.append((found["upper"] - found["lower"]) / 2.0)
                hits.append((found["lower"] <= theta) & (theta <= found["upper"]))
            cells.append(f"{np.median(halves):.2g} ({100.0 * np.mean(hits):.0f} %)")
        rows_of_table.append(cells)
    table(["prior_sd", *map(str, epsilons)], rows_of_table)


def polynomial(sets: int) -> None:
    """Print the error of the polynomial: distance to the MLE of noisy statistics with hardly any noise."""
    print("\nError of the polynomial, rms, in standard errors (and as it is)\n")
    rows_of_table = []
    for regression in (dpmc.LogisticRegression, dpmc.PoissonRegression):
        model = regression("y", names(3), true_theta=[0.2, 0.5, -0.5])
        for kind in ("normal", "binary", "skew"):
            cells = [regression.__name__, kind]
            for n in (1_000, 5_000, 50_000):
                off = np.array([polynomial_error(model, kind, n, seed) for seed in range(sets)])
                rms = np.sqrt((off**2).mean(axis=(0, 2)))
                cells.append(f"{rms[0]:.2f} ({rms[1]:.3f})")
            rows_of_table.append(cells)
    table(["regression", "predictors", "n = 1,000", "5,000", "50,000"], rows_of_table)


def polynomial_error(model: Any, kind: str, n: int, seed: int) -> np.ndarray:
    """Return posterior mean less MLE, without noise: in standard errors and as it is, (2, d)."""
    rows = simulate(model, kind, model.true_theta, n, np.random.default_rng([seed, n]))
    fit = maximum_likelihood(model, rows)
    off = dpmc.summary(without_noise(model, rows, seed))["mean"].to_numpy() - fit.estimate
    return np.array([off / fit.error, off])


if __name__ == "__main__":
    readme(seeds=20)
    polynomial(sets=3)
    priors(sets=40)
