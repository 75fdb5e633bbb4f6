"""Fill numba's cache with every kernel, so that many processes do not compile at once."""

from typing import Any

import numpy as np

from dpmc.evaluators import evaluator_of, kernels
from dpmc.evaluators.poisson import BoundedRows
from dpmc.metrics import mmd
from dpmc.models.circle import Circle
from dpmc.models.gaussian import Gaussian
from dpmc.models.logistic import Logistic


def main() -> None:
    """Compute every sum of every evaluator on a few rows."""
    generator = np.random.default_rng(0)
    models: list[Any] = [Circle(1e-3), Gaussian(np.eye(2), 1.0, 1.0), Logistic(2, 1.0)]
    for model in models:
        rows = model.simulate(generator, np.zeros(model.dimension), 20)
        theta = np.ones((2, model.dimension))
        bound, words = np.ones(2), generator.integers(0, 2**64, (2, 5), dtype=np.uint64)
        evaluator = evaluator_of(model, rows)
        # Moves of all components, and of one, which take other kernels.
        for proposal in (theta + 0.1, theta + 0.1 * np.eye(2, model.dimension)):
            evaluator.ratio_sums(theta, proposal, bound)
        evaluator.gradient_sums(theta, 1.0)
        evaluator.batch_ratio_sums(theta, proposal, bound, words)
        evaluator.batch_gradient_sums(theta, 1.0, words)
        chosen = BoundedRows(np.ones(20)).draw(words[0, 0], 5)
        ratios = evaluator.row_ratios(theta[0], proposal[0], chosen)
        kernels.thinned_log_ratio(words[0, 0], ratios, np.ones(5), 0.5)
        kernels.poisson_counts(words[:, 0], bound, 10)
        kernels.uniforms(words[:, 0], kernels.NOISE)
    mmd.squared_mmd(np.zeros((2, 1)), np.ones((2, 1)), 1.0)


if __name__ == "__main__":
    main()
