"""How far the walk of a setting that a search found comes for its budget, and the most that any could."""

import math
from typing import Any

import numpy as np

from dpmc.data.problem import Problem

#: A random walk that moves little against the posterior, and whose noise has sd s, is accepted with
#: probability 2Φ(−s/2). Its iterations grow as (s/step)², so that what it diffuses for its budget goes as
#: s² 2Φ(−s/2), which is greatest here.
BEST_NOISE_SD, BEST_ACCEPTANCE = 2.381, 0.234


def add_reach(result: dict[str, Any], problem: Problem) -> None:
    """Add `reach` and `most_reach` to what a search of DP penalty wrote down; leave others as they are.

    A walk of step h_i that is accepted at rate a diffuses h_i √(k a) in k iterations. The noise's variance is
    s² = 4T²τ²n clip² Σ h_i², and k = μ² n τ² what a budget of μ (Gaussian differential privacy) allows. That
    makes μ h_i √(s² a) / (2T clip √Σ h_i²), and s² a ≤ s² 2Φ(−s/2) ≤ 1.33: n, τ and the length of the step
    drop out. Of normal steps the short ones are accepted more often; `_shortening` takes account of that.
    """
    about = result["search"]
    if about["algorithm"] != "dp-penalty" or not {"tau", "clip"} <= set(about["free"]):
        return
    known = np.isfinite(problem.posterior_covariance).all()
    sd = np.sqrt(np.diag(problem.posterior_covariance)) if known else problem.reference.std(axis=0)
    best = BEST_NOISE_SD * math.sqrt(BEST_ACCEPTANCE)
    for which, setting in (("pinned", result["pinned"]), ("chosen", result["hyperparameters"])):
        summary = about[which]
        if "acceptance_rate" not in summary:
            continue
        step = np.broadcast_to(np.asarray(setting["proposal_sd"], dtype=float), sd.shape)
        mu = math.sqrt(summary["iterations"] / problem.n) / setting["tau"]
        most = mu * best / (2.0 * problem.temperature * setting["clip"]) * step / np.linalg.norm(step)
        noise = 2.0 * problem.temperature * setting["tau"] * math.sqrt(problem.n) * setting["clip"]
        shorter = _shortening(noise * float(np.linalg.norm(step)), len(sd))
        made = step * math.sqrt(summary["iterations"] * summary["acceptance_rate"] * shorter)
        least = int(np.argmin(made / sd))
        summary["reach"], summary["most_reach"] = float((made / sd)[least]), float((most / sd)[least])


def _shortening(sd: float, dimension: int) -> float:
    """Mean square of the accepted ones of normal steps in units of that of all, small against the posterior.

    The square u of a step's length in units of its mean is χ²_d/d; noise of sd s√u accepts 2Φ(−s√u/2).
    """
    from scipy.stats import chi2, norm

    u = chi2.ppf((np.arange(400) + 0.5) / 400, dimension) / dimension
    accepted = norm.cdf(-0.5 * sd * np.sqrt(u))
    return float(np.mean(u * accepted) / np.mean(accepted))
