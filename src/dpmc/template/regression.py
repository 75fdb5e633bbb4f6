"""The model of this project, a linear regression: `regression:Regression` wherever dpmc takes a model."""

import numpy as np

SD = 1.0  # of the noise, known


class Regression:
    """Outcomes y ~ N(a + b x, SD²), rows (x, y), parameters θ = (a, b) with a prior N(0, 10²) each."""

    dimension = 2
    n = 2000  # rows to simulate
    true_theta = np.array([0.0, 1.0])  # for simulated rows and start points: a guess from public knowledge
    tempering = 100  # the likelihood counts as that of 100 rows, so that private chains mix better

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the log-likelihood of each row, (n,). The j-th value must depend only on the j-th row."""
        return -0.5 * ((rows[:, 1] - theta[0] - theta[1] * rows[:, 0]) / SD) ** 2

    def log_prior(self, theta: np.ndarray) -> float:
        """Return the log-density of the prior at θ (2,), up to a constant; without this method it is flat."""
        return -0.5 * float((theta**2).sum()) / 100.0

    # Optional, to simulate rows: hyperparameters are tried on them, never on the private rows.
    def simulate(self, generator: np.random.Generator, theta: np.ndarray, n: int) -> np.ndarray:
        """Draw n rows (n, 2)."""
        x = generator.standard_normal(n)
        return np.column_stack([x, theta[0] + theta[1] * x + SD * generator.standard_normal(n)])

    # Optional, if the posterior is known: chains are compared with it.
    def posterior(self, rows: np.ndarray, temperature: float) -> "Posterior":
        """Return the exact posterior of the rows (n, 2)."""
        return Posterior(rows, temperature)


class Posterior:
    """The exact posterior, a normal distribution."""

    def __init__(self, rows: np.ndarray, temperature: float) -> None:
        design = np.column_stack([np.ones(len(rows)), rows[:, 0]])
        precision = temperature * design.T @ design / SD**2 + np.eye(2) / 100.0
        self._covariance = np.linalg.inv(precision)
        self._mean = self._covariance @ (temperature * design.T @ rows[:, 1] / SD**2)

    def draws(self, generator: np.random.Generator, size: int) -> np.ndarray:
        """Draw from the posterior, (size, 2)."""
        return generator.multivariate_normal(self._mean, self._covariance, size)

    def mean(self) -> np.ndarray:
        """Return the mean, (2,)."""
        return self._mean

    def covariance(self) -> np.ndarray:
        """Return the covariance, (2, 2)."""
        return self._covariance
