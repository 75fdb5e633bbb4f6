"""Compare one noisy sum with a chain: tables of docs/reference/algorithms/noisy-statistics.md.

    python benchmarks/noisy_statistics.py

Simulated rows; estimates are means of the second half of the draws. Five minutes on one core.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from measuring import table

import dpmc

LEVEL = 0.9  #: of intervals
N, D, PRIOR_SD, EPSILON = 5_000, 8, 0.5, 1.0  #: of the logistic regression
#: DP penalty there: rows that the likelihood counts as, step in posterior sds, noise of a log ratio in nats,
#: clip bound. The least error of a few settings on simulated rows.
N0, STEP, NOISE, CLIP = 160.0, 0.5, 2.4, 1.5
UNCLIPPED = 0.995  #: share of simulated rows that a clip bound does not clip, as in `dpmc.recommend`


class Fit(NamedTuple):
    """Maximum-likelihood estimate (d,) and standard errors (d,)."""

    estimate: np.ndarray
    error: np.ndarray


def names(d: int) -> list[str]:
    return [f"x{i}" for i in range(1, d)]


def maximum_likelihood(model: Any, rows: np.ndarray) -> Fit:
    """Return the fit of a logistic or Poisson regression, by Newton's method."""
    z, y = model.design(rows), rows[:, 0]
    theta = np.zeros(model.dimension)
    for _ in range(30):
        eta = z @ theta
        mean = model.mean(eta)
        information = (z * model.outcome_variance(eta, theta)[:, None]).T @ z
        theta = theta + np.linalg.solve(information, z.T @ (y - mean))
    return Fit(theta, np.sqrt(np.diag(np.linalg.inv(information))))


def simulate(model: Any, kind: str, theta: np.ndarray, n: int, generator: np.random.Generator) -> np.ndarray:
    """Return rows whose predictors have mean 0 and variance 1: normal, 0/1 with a quarter of ones, skew."""
    size = (n, model.dimension - 1)
    if kind == "normal":
        x = generator.standard_normal(size)
    elif kind == "binary":
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


def eight(sets: int) -> None:
    """Print errors and intervals of a logistic regression with eight coefficients."""
    generator = np.random.default_rng(1)
    model = dpmc.LogisticRegression("y", names(D), prior_sd=PRIOR_SD)
    tempered = dpmc.LogisticRegression("y", names(D), prior_sd=PRIOR_SD, tempering=N0)
    theta = generator.normal(0.0, PRIOR_SD, (1 + sets, D))
    data = [simulate(model, "normal", one, N, generator) for one in theta]
    twin, fits = data[0], [maximum_likelihood(model, rows) for rows in data]
    clip, sd = clip_bound(model, twin), fits[0].error  # the twin stands for public knowledge

    def one(rows: np.ndarray, seed: int) -> Any:
        return one_sum(model, rows, EPSILON, clip, seed)

    def exact(rows: np.ndarray, seed: int) -> Any:
        return without_noise(model, rows, seed)

    def chain(rows: np.ndarray, seed: int) -> Any:
        return penalty(tempered, rows, sd, seed)

    print(
        f"Logistic regression, {D} coefficients, {N} rows, {sets} data sets, ε = {EPSILON}, clip {clip:.2f}\n"
    )
    methods = {"noisy-statistics": one, "the same without noise": exact, "dp-penalty": chain}
    table(
        ["method", "distance to MLE", "rms, s.e.", "width", "coverage of 90 %", "least ESS"],
        [[name, *judged(run, data[1:], fits[1:], theta[1:])] for name, run in methods.items()],
    )
    print(f"\nnorm of the standard errors: {np.median([np.linalg.norm(fit.error) for fit in fits]):.3f}\n")


def judged(
    run: Callable[[np.ndarray, int], Any], data: list[np.ndarray], fits: list[Fit], theta: np.ndarray
) -> list[float]:
    """Return medians of distance and least ESS, rms error, mean width over the exact one, coverage."""
    distances, errors, widths, covered, least = [], [], [], [], []
    for seed, (rows, fit, truth) in enumerate(zip(data, fits, theta, strict=True)):
        found = dpmc.summary(run(rows, seed), level=LEVEL)
        off = found["mean"].to_numpy() - fit.estimate
        distances.append(np.linalg.norm(off))
        errors.append(off / fit.error)
        widths.append((found["upper"] - found["lower"]).to_numpy() / (2.0 * 1.645 * fit.error))
        covered.append((found["lower"].to_numpy() <= truth) & (truth <= found["upper"].to_numpy()))
        least.append(found["ess"].min())
    rms = np.sqrt(np.mean(np.square(errors)))
    return [*map(float, (np.median(distances), rms, np.mean(widths), np.mean(covered), np.median(least)))]


def penalty(model: Any, rows: np.ndarray, sd: np.ndarray, seed: int) -> Any:
    """Run DP penalty with steps in units of sd (d,), the standard errors of simulated rows."""
    lengths = STEP * sd * np.sqrt(N / N0 / D)
    tau = NOISE / (2.0 * N0 / np.sqrt(N) * CLIP * np.sqrt((lengths**2).sum()))
    setting = {"tau": tau, "clip": CLIP, "proposal_sd": lengths}
    return dpmc.sample(model, rows, epsilon=EPSILON, hyperparameters=setting, seed=seed, progress=False)


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
    eight(sets=20)
    readme(seeds=20)
    polynomial(sets=3)
