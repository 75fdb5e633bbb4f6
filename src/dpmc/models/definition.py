"""The definition of a model in a study: its formulas and the parameters of its data."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Definition:
    """A model with the size, tempering and true parameters of its data (Table 5.1 of the thesis)."""

    model: Any
    n: int  # rows of the published data set
    tempering: float | None  # n_0: T = n_0 / n; None: T = 1
    true_theta: tuple[float, ...]

    def temperature(self, n: int) -> float:
        """Return T for n rows."""
        return 1.0 if self.tempering is None else self.tempering / n
