"""Defaults that algorithms share."""

from dataclasses import Field, dataclass
from typing import Any, ClassVar

import numpy as np

from dpmc.base import Algorithm


@dataclass(frozen=True, kw_only=True)
class Sampler(Algorithm):
    """Defaults of an algorithm that uses all rows and carries nothing between iterations."""

    draws_version = 1
    batch_size = 0
    #: Hyperparameters that only `calibrate` reads, declared as those of the sampler.
    calibration: ClassVar[dict[str, Field[Any]]] = {}

    @property
    def note(self) -> str:
        """Return a remark to show with the output; "" for the default variant."""
        return ""

    @property
    def public_clip(self) -> float | None:
        """Return the clip bound of every row in nats per unit distance, if rows are drawn with replacement.

        ∞: each row has its own bound. None for all other algorithms.
        """
        return None

    def first_carried(self, dimension: int, generator: np.random.Generator) -> np.ndarray:
        """Return what one chain carries into its first iteration: nothing, (0,)."""
        return np.zeros(0)
