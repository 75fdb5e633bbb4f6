"""A model of one's own with the posterior given a noisy sum of y and y²."""

import numpy as np

from dpmc.models.gaussian import GaussianPosterior


class Numbers:
    """y ~ N(θ_1, 1), and θ_2 the mean of y²."""

    dimension = 2
    columns = ("y",)
    summary_count = 2

    def log_likelihood(self, theta, rows):  # type: ignore[no-untyped-def]
        y = rows[:, 0]
        return -0.5 * (y - theta[0]) ** 2 - 0.5 * (y**2 - theta[1]) ** 2

    def simulate(self, generator, theta, n):  # type: ignore[no-untyped-def]
        return theta[0] + generator.standard_normal((n, 1))

    def summaries(self, rows):  # type: ignore[no-untyped-def]
        return np.column_stack([rows[:, 0], rows[:, 0] ** 2])

    def posterior_given(self, noisy):  # type: ignore[no-untyped-def]
        return GaussianPosterior(noisy.total / noisy.n, np.eye(2) / noisy.rows_worth)


model = Numbers()
