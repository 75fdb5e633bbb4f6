"""Compare the cost of an effective draw of `hmc`, without privacy, with BlackJAX's HMC and NUTS.

    python benchmarks/effective.py    # in an environment of its own: this package and `pip install blackjax`

Logistic regression with eight predictors and an intercept, 20,000 rows, one chain. CPU seconds for the least
bulk effective sample size of a parameter, after a first run that compiles. BlackJAX runs in the same
process, in double precision, with the same rows, start, masses and steps; NUTS finds its own number of steps.
"""

import os
import time
from collections.abc import Callable

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import blackjax
import jax
import numpy as np
from measuring import table

import dpmc
from dpmc.common.draws import diagnostics

N, DRAWS, STEPS, ROUNDS = 20_000, 1000, 8, 3
MODEL = dpmc.LogisticRegression("y", [f"x{i}" for i in range(8)], prior_sd=2.0)
ROWS = MODEL.simulate(np.random.default_rng(0), np.linspace(-0.5, 0.5, 9), N)
JITTERS = ("none", "halton", [0.8, 1.2])


def posterior() -> tuple[np.ndarray, np.ndarray]:
    """Return mode and standard deviations (d,) of the normal approximation, by Newton's method."""
    z, theta = MODEL.design(ROWS), np.zeros(9)
    for _ in range(20):
        mean = MODEL.mean(z @ theta)
        precision = (z * (mean * (1.0 - mean))[:, None]).T @ z + np.diag(MODEL.prior_sd**-2.0)
        slope = MODEL.log_likelihood_gradient(theta, ROWS).sum(axis=0) + MODEL.log_prior_gradient(theta)
        theta = theta + np.linalg.solve(precision, slope)
    return theta, np.sqrt(np.diag(np.linalg.inv(precision)))


def ours(start: np.ndarray, sd: np.ndarray, step: float, jitter: object) -> np.ndarray:
    """Return draws (DRAWS, d) of `hmc`."""
    values = {"steps": STEPS, "step_size": step, "mass": (sd**-2.0).tolist(), "jitter": jitter}
    run = dpmc.sample(
        MODEL,
        ROWS,
        "hmc",
        epsilon="inf",
        hyperparameters=values,
        iterations=DRAWS,
        start=start,
        progress=False,
    )
    return run.posterior["theta"].values[0]


def theirs(kind: str, start: np.ndarray, sd: np.ndarray, step: float) -> Callable[[], np.ndarray]:
    """Return a function that makes draws (DRAWS, d) of BlackJAX's `kind`, compiled when first called."""
    t, prior = jax.numpy.asarray(MODEL.statistics(ROWS)), jax.numpy.asarray(MODEL.prior_sd)

    def log_density(theta: jax.Array) -> jax.Array:
        return -jax.numpy.logaddexp(0.0, -(t @ theta)).sum() - 0.5 * ((theta / prior) ** 2).sum()

    given = {"num_integration_steps": STEPS} if kind == "hmc" else {}
    kernel = getattr(blackjax, kind)(log_density, step, sd**2, **given)

    @jax.jit
    def chain(key: jax.Array) -> jax.Array:
        def one(state: object, its_key: jax.Array) -> tuple[object, jax.Array]:
            state, _ = kernel.step(its_key, state)
            return state, state.position

        return jax.lax.scan(one, kernel.init(jax.numpy.asarray(start)), jax.random.split(key, DRAWS))[1]

    return lambda: np.asarray(chain(jax.random.key(0)))


def seconds(run: Callable[[], np.ndarray]) -> tuple[float, float]:
    """Return CPU seconds of a run, the least of some, and the least effective size of its parameters."""
    draws, found = run(), []
    for _ in range(ROUNDS):
        began = time.process_time()
        run()
        found.append(time.process_time() - began)
    return min(found), float(diagnostics(draws[None])[1].min())


def main() -> None:
    """Print a row for each sampler."""
    jax.config.update("jax_enable_x64", True)
    start, sd = posterior()
    step = np.pi / 2.0 / STEPS  # a quarter of a turn, in standard deviations
    samplers: dict[str, Callable[[], np.ndarray]] = {
        f"hmc, jitter: {jitter}": lambda jitter=jitter: ours(start, sd, step, jitter) for jitter in JITTERS
    }
    samplers |= {f"BlackJAX {kind}": theirs(kind, start, sd, step) for kind in ("hmc", "nuts")}
    found = {name: seconds(run) for name, run in samplers.items()}
    (all_seconds, effective) = found["BlackJAX hmc"]
    rows = [
        [name, 1e3 * took / DRAWS, size, 1e3 * took / size, took / size / (all_seconds / effective)]
        for name, (took, size) in found.items()
    ]
    table(
        ("sampler", "ms a draw", "effective draws of 1,000", "ms an effective draw", "BlackJAX hmc's is 1"),
        rows,
    )


if __name__ == "__main__":
    main()
