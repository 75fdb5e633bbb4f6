"""The definition of a model in a study: its formulas and the parameters of its data."""

from dataclasses import dataclass

from dpmc.base import Model
from dpmc.common.errors import DpmcError
from dpmc.models.published import ExactDraws, RowMaker


@dataclass(frozen=True)
class Definition:
    """A model with the size, tempering and true parameters of its data (Table 5.1 of the thesis)."""

    model: Model
    n: int  # rows of the published data set
    tempering: float | None  # n_0: T = n_0 / n; None: T = 1
    true_theta: tuple[float, ...]
    published_rows: RowMaker | None = None
    published_draws: ExactDraws | None = None  # None: those of our seeds
    uniform_starts: bool = False  # start points are uniform on ±1/√d; else normal
    #: Mean and sd of normal start points; None: the model's `start`, else the true θ, and the posterior's sd.
    around: tuple[tuple[float, ...], float] | None = None

    def temperature(self, n: int) -> float:
        """Return T for n rows; raise DpmcError if they would count as more rows than they are."""
        if self.tempering is None:
            return 1.0
        if self.tempering > n:
            raise DpmcError(
                f"tempering: {self.tempering:g} must be at most the number of rows, {n}: it is the number of "
                "rows as which they count"
            )
        return self.tempering / n
