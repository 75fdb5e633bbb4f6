"""What defines a model in a study: its formulas, and the data that go with it."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Definition:
    """One model of the catalogue (Table 5.1 of the thesis; then those of two papers)."""

    model: Any
    n: int  # rows of the published data set
    tempering: float | None  # n_0: T = n_0 / n; None: T = 1
    true_theta: tuple[float, ...]

    def temperature(self, n: int) -> float:
        """T for n rows."""
        return 1.0 if self.tempering is None else self.tempering / n
