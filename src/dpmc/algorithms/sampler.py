"""Defaults that algorithms share."""

import numpy as np

from dpmc.base import Algorithm


class Sampler(Algorithm):
    """Defaults of an algorithm that uses all rows and carries nothing between iterations."""

    draws_version = 1
    note = ""  # a remark to show with its output
    batch_size = 0
    #: For algorithms that draw rows with replacement: the clip bound of every row in nats per unit distance;
    #: ∞: each row has its own bound. None for all other algorithms.
    public_clip: float | None = None

    def first_carried(self, dimension: int, generator: np.random.Generator) -> np.ndarray:
        """Return what one chain carries into its first iteration: nothing, (0,)."""
        return np.zeros(0)
