"""Tables that count how often one looks at them."""

from typing import Any

import numpy as np


class Counted:
    """A table that notes each look at one of its numbers."""

    def __init__(self, values: np.ndarray, looks: list[int]) -> None:
        self.values, self.shape, self.looks = values, values.shape, looks

    def __getitem__(self, index: int) -> Any:
        if self.values.ndim > 1:
            return Counted(self.values[index], self.looks)
        self.looks.append(index)
        return float(self.values[index])


class NodesCounted(Counted):
    """A table of nodes that notes each look at one of them."""

    def __getitem__(self, node: int) -> Any:
        self.looks.append(node)
        return self.values[node]
