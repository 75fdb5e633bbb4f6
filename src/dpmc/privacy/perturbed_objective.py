"""Objective perturbation of logistic regression: its noise, and the proof for a replaced row.

Rows are z with ‖z‖ ≤ B and y in {0, 1}, ℓ(θ) = −ln p(y|θ·z + offset). Released is the θ that minimises
Σ ℓ_j(θ) + ½ θᵀRθ + b·θ, b ~ N(0, σ² I), R a public matrix with R ≥ ΛI (Kifer, Smith and Thakurta 2012,
Algorithm 1). Q is the upper tail of a standard normal number.

*Theorem.* It is (ε, δ)-DP for a replaced row, with δ = Q(x) + 2Q(2x) for any x > 0 and
ε = 2xB/σ + 2B²/σ² + ln(1 + B²/(4Λ)).

*Proof.* θ and b determine each other, b_D(θ) = −Σ∇ℓ_j − Rθ, with Jacobian A_D = Σ∇²ℓ_j + R. So the density
of θ is φ(b_D(θ)/σ) |A_D(θ)|, up to a constant. Let D have u where D' has v. Without that row A is ΛI or more,
and ∇²ℓ = w zzᵀ with 0 ≤ w ≤ ¼: |A_D|/|A_D'| ≤ 1 + ¼ uᵀA⁻¹u ≤ 1 + B²/(4Λ). With ∇ℓ_u = −c u', u' = ±u by its
outcome and 0 < c < 1, b_D' − b_D = ∇ℓ_u − ∇ℓ_v = c_v v' − c_u u' =: Δ, ‖Δ‖ ≤ 2B, the log ratio of the normal
densities is (b·Δ + ½‖Δ‖²)/σ², and b·Δ ≤ max(0, b·v', −b·u', b·(v' − u')). In D b is N(0, σ² I) and u', v' are
fixed, of lengths B, B and 2B at most, so this exceeds 2Bσx with probability Q(2x) + Q(2x) + Q(x) at most. ∎

Kifer, Smith and Thakurta have ε/2 for the determinants; their noise is for a row that is added.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpmc.models.families import Bernoulli
from dpmc.models.regression import LogisticRegression
from dpmc.privacy.questions import shortened

ROUNDED_UP = 1.0 + 1e-12  #: more than rounding errors


class Perturbation(NamedTuple):
    """Public constants of an (ε, δ)-DP query."""

    noise_sd: float  # σ of each component of b
    ridge: float  # Λ

    @classmethod
    def of(cls, epsilon: float, delta: float, bound: float, share: float = 0.5) -> "Perturbation":
        """Return the least noise and ridge by the theorem; the ridge has a share of ε, `bound` is B."""
        from scipy.optimize import brentq
        from scipy.stats import norm

        # ln δ, because δ may be far below what differences resolve. At 0 it is ln 1.5.
        def excess(x: float) -> float:
            return float(np.logaddexp(norm.logsf(x), math.log(2.0) + norm.logsf(2.0 * x))) - math.log(delta)

        x = ROUNDED_UP * float(brentq(excess, 0.0, 40.0))
        for_noise, for_ridge = (1.0 - share) * epsilon, min(share * epsilon, 700.0)
        ratio = for_noise / (x + math.sqrt(x * x + 2.0 * for_noise))  # B/σ, of 2xB/σ + 2B²/σ² = for_noise
        return cls(bound / ratio * ROUNDED_UP, bound**2 / (4.0 * math.expm1(for_ridge)) * ROUNDED_UP)


@dataclass(frozen=True, eq=False)
class PerturbedLogit:
    """Σ ℓ_j(θ) + ½ Σ ridge θ² + b·θ of rows clipped to ‖z‖ ≤ `clip`."""

    model: LogisticRegression
    clip: float  # B
    noise_sd: float  # σ
    ridge: np.ndarray  # (p,) diagonal of R

    def derivatives(self, rows: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Return Σ ∇ℓ_j and Σ ∇²ℓ_j (p + 1, p) at θ (p,), without noise; a row that is not finite is 0."""
        with np.errstate(all="ignore"):
            z, offset = self.model.design(rows), self.model.design.offset(rows) + np.zeros(len(rows))
            usable = np.isfinite((z**2).sum(axis=1)) & np.isfinite(offset)
        z, offset = (np.where(usable, part.T, 0.0).T for part in (z, offset))
        z = shortened(z, self.clip)
        eta, y = z @ theta + offset, (self.model.response(rows) > 0.5).astype(float)
        p = Bernoulli().mean(eta)
        return np.vstack([-Bernoulli().score(eta, y) @ z, (z * (p * (1.0 - p))[:, None]).T @ z])
