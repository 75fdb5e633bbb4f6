"""What algorithms have in common unless they say otherwise."""

import numpy as np

from dpmc.base import Algorithm


class Sampler(Algorithm):
    """Defaults of an algorithm that looks at all rows and carries nothing along."""

    draws_version = 1
    note = ""  # what must be said wherever its output is shown
    batch_size = 0
    #: Of algorithms that draw rows with replacement: clip of every row in nats per unit distance; ∞: rows
    #: have bounds of their own. None for all others.
    public_clip: float | None = None

    def first_carried(self, dimension: int, generator: np.random.Generator) -> np.ndarray:
        """What one chain carries into its first iteration (e,): nothing."""
        return np.zeros(0)
