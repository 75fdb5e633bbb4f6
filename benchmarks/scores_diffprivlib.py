"""Estimates by diffprivlib of data sets in a file: run by `scores.py`, with a Python that has diffprivlib.

python scores_diffprivlib.py GIVEN.npz FOUND.npy
"""

import sys
from itertools import product
from typing import Any

import numpy as np
from diffprivlib.models import LinearRegression, LogisticRegression


def settings(regression: str, d: int) -> list[dict[str, Any]]:
    """Return the bounds that are tried."""
    if regression == "linear":
        pairs = product((2.0, 3.0, 5.0), (2.5, 5.0))
        return [{"bounds_X": (-x, x), "bounds_y": (-y, y)} for x, y in pairs]
    pairs = product((1.0, 1.5, 2.0), (0.1, 1.0, 10.0))
    return [{"data_norm": norm * d**0.5, "C": c} for norm, c in pairs]


def main() -> None:
    """Fit each data set with each setting."""
    given = np.load(sys.argv[1])
    rows, regression = given["rows"], str(given["regression"])
    kind = LinearRegression if regression == "linear" else LogisticRegression
    found = []
    for j, one in enumerate(rows):
        estimates = []
        for setting in settings(regression, rows.shape[2]):
            fit = kind(epsilon=float(given["epsilon"]), random_state=j, **setting).fit(one[:, 1:], one[:, 0])
            estimates.append(np.append(fit.intercept_, fit.coef_))
        found.append(estimates)
    np.save(sys.argv[2], np.array(found, float))


if __name__ == "__main__":
    main()
