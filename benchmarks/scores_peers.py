"""What noisy scores are compared with: a lower bound, AdaSSP, objective perturbation, diffprivlib.

Peers have no prior. Their bounds are the best of a few in hindsight, which costs them nothing: so they look
better than they would be.
"""

import subprocess
import tempfile
from pathlib import Path

import numpy as np
from scores_cells import DataSet, weights

from dpmc.algorithms.noisy_scores import AT, NoisyScores, Search
from dpmc.models.families import Bernoulli
from dpmc.models.regression import Regression
from dpmc.models.score_tables import reference, score_table
from dpmc.privacy.questions import ScoreQuestion

NORMS = (0.7, 0.85, 1.0, 1.25, 1.6, 2.2)  #: bounds of ‖z‖ that are tried, times √d
OUTCOMES = (1.5, 2.5, 4.0, 6.0)  #: bounds of |y| that AdaSSP tries
FREE = 1e-9  #: share of the information, which is known: as good as none
SCRIPT = Path(__file__).with_name("scores_diffprivlib.py")


def lower_bound(
    data: DataSet,
    model: Regression,
    method: NoisyScores,
    g: np.random.Generator,
) -> np.ndarray:
    """Return the estimate (d,) from scores at the truth, with the whole budget; M and whitening are known."""
    n, p = len(data.rows), len(data.theta)
    strength = method.mu * np.sqrt(n / (1.0 - method.information_share))  # `bounds` takes the share off
    b, c = Search(method, model, n).bounds(strength, False, p)
    z, table = model.design(data.rows), score_table(model.family, c)
    information = (z * weights_of(model, z @ data.theta)[:, None]).T @ z / n
    values, vectors = np.linalg.eigh(information)
    whitening = (vectors / np.sqrt(values)) @ vectors.T
    bound = b * reference(model.family, c, AT).bound * np.sqrt(p)
    asked = ScoreQuestion(model, table, data.theta, whitening, bound, 1e9, method.mu, FREE)
    answer = asked.answer(asked.total(data.rows))
    noisy = answer.scores + asked.noise_sd * g.standard_normal(p)
    return data.theta + whitening @ np.linalg.solve(answer.information, noisy)


def weights_of(model: Regression, eta: np.ndarray) -> np.ndarray:
    """Return the information of each row on η (n,)."""
    family = model.family
    return np.full(len(eta), family.sd**-2.0) if hasattr(family, "sd") else weights(family, eta)


def clipped(z: np.ndarray, bound: float) -> np.ndarray:
    """Return rows scaled down to norm `bound`."""
    return z * np.minimum(1.0, bound / np.sqrt((z**2).sum(axis=1)))[:, None]


def adassp(z: np.ndarray, y: np.ndarray, mu: float, g: np.random.Generator) -> np.ndarray:
    """Return AdaSSP's estimates (settings, d): Wang 2018, noise by Gaussian DP, a third of μ² each."""
    d, mu = z.shape[1], mu / np.sqrt(3.0)
    found = []
    for norm in np.array(NORMS) * np.sqrt(d):
        x = clipped(z, norm)
        square, sd = x.T @ x, np.sqrt(2.0) * norm**2 / mu
        noise = np.triu(g.standard_normal((d, d)), 1) / np.sqrt(2.0)
        noise = noise + noise.T + np.diag(g.standard_normal(d))
        least = float(np.linalg.eigvalsh(square)[0]) + norm**2 / mu * (g.standard_normal() - 1.645)
        ridge = max(0.0, sd * np.sqrt(d * np.log(2.0 * d**2 / 0.05)) - max(least, 0.0))
        for most in OUTCOMES:
            product = x.T @ np.clip(y, -most, most) + 2.0 * norm * most / mu * g.standard_normal(d)
            found.append(np.linalg.solve(square + sd * noise + ridge * np.eye(d), product))
    return np.array(found)


def objective_perturbation(
    z: np.ndarray, y: np.ndarray, epsilon: float, delta: float, g: np.random.Generator
) -> np.ndarray:
    """Return estimates (settings, d) of logistic regression by Kifer, Smith and Thakurta 2012."""
    d, found = z.shape[1], []
    for norm in np.array(NORMS) * np.sqrt(d):
        x, ridge = clipped(z, norm), norm**2 / 2.0 / epsilon  # 2λ/ε, λ = ‖x‖²/4
        tilt = norm * np.sqrt(8.0 * np.log(2.0 / delta) + 4.0 * epsilon) / epsilon * g.standard_normal(d)
        theta = np.zeros(d)
        for _ in range(60):
            eta = x @ theta
            gradient = x.T @ Bernoulli().score(eta, y) - ridge * theta - tilt
            curvature = (x * weights(Bernoulli(), eta)[:, None]).T @ x + ridge * np.eye(d)
            step = np.linalg.solve(curvature, gradient)
            theta = theta + step * min(1.0, 2.0 / np.sqrt(step @ step))
            if np.abs(step).max() < 1e-8:
                break
        found.append(theta)
    return np.array(found)


def diffprivlib(python: str, regression: str, data: list[DataSet], epsilon: float) -> np.ndarray:
    """Return diffprivlib's estimates (sets, settings, d), computed by another Python; it has pure ε."""
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder, "given.npz"), Path(folder, "found.npy")
        np.savez(given, rows=np.array([one.rows for one in data]), epsilon=epsilon, regression=regression)
        subprocess.run([python, "-W", "ignore", str(SCRIPT), str(given), str(found)], check=True)
        estimates: np.ndarray = np.load(found)
    return estimates


def best(estimates: np.ndarray, data: list[DataSet]) -> float:
    """Return the least root mean square error in standard errors of the settings (sets, settings, d)."""
    fit, error = (np.array([getattr(one, name) for one in data])[:, None] for name in ("fit", "error"))
    return float(np.sqrt((((estimates - fit) / error) ** 2).mean(axis=(0, 2))).min())
