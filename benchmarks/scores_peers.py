"""What noisy scores are compared with: a lower bound, AdaSSP, objective perturbation, diffprivlib.

Their bounds are the best of a few in hindsight, which costs them nothing: so they look
better than they would be.
"""

import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scores_cells import Cell, DataSet, weights

from dpmc.algorithms.adassp import AdaSSP
from dpmc.algorithms.noisy_scores import AT, NoisyScores, Search
from dpmc.algorithms.objective_perturbation import ObjectivePerturbation
from dpmc.evaluators.generic import Evaluator
from dpmc.models.regression import Regression
from dpmc.models.score_tables import reference, score_table
from dpmc.privacy.mechanisms import PrivateData
from dpmc.privacy.noise import LabNoise
from dpmc.privacy.questions import ScoreQuestion

PEERS: dict[str, Any] = {"linear": AdaSSP, "logistic": ObjectivePerturbation}  #: by regression

NORMS = (0.7, 0.85, 1.0, 1.25, 1.6, 2.2)  #: bounds of ‖z‖ that are tried, times √d
OUTCOMES = (1.5, 2.5, 4.0, 6.0)  #: bounds of |y| that AdaSSP tries
SHARES = (0.5, 0.25, 0.1)  #: of ε for the ridge, that objective perturbation tries
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


def lab(rows: np.ndarray, model: Regression, g: np.random.Generator) -> PrivateData:
    """Return the mechanisms of one run on these rows, with noise of a generator."""
    noise = LabNoise(np.zeros((1, 1)), np.zeros((1, 1, 0, model.dimension)), [g])
    return PrivateData(Evaluator(model, rows), 1.0, noise, np.zeros((1, 1, 0), np.uint64))


def estimates(cell: Cell, model: Regression, rows: np.ndarray, g: np.random.Generator) -> np.ndarray:
    """Return the estimates (settings, d) of the peer of a regression, of `PEERS`."""
    method, delta, private = PEERS[cell.regression], 0.1 / cell.n, lab(rows, model, g)
    norms = [{"clip_z": norm * np.sqrt(model.design(rows[:1]).shape[1])} for norm in NORMS]
    others = [{"clip_y": most} for most in OUTCOMES] if method is AdaSSP else [{"share": f} for f in SHARES]
    settings = [{**one, **other} for one in norms for other in others]
    made = [method(**method.calibrate(values, cell.epsilon, delta, cell.n)) for values in settings]
    return np.array([one.estimates(model, private)[0] for one in made])


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
