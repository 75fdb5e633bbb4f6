"""R² of diffprivlib's own example of linear regression, over many splits of its rows.

python benchmarks/published_diffprivlib.py, with a Python that has diffprivlib

The example (notebooks/linear_regression.ipynb of its repository) has ε = 1, the first two columns of
scikit-learn's diabetes table, and one split, whose seed it does not give.
"""

import warnings

import numpy as np
from diffprivlib.models import LinearRegression
from sklearn import linear_model
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

PUBLISHED = {"private": -0.02, "not private": 0.06}
SPLITS = 500


def main() -> None:
    """Print medians and 5 and 95 % points over splits beside what is published."""
    table, found = load_diabetes(), {name: [] for name in PUBLISHED}
    for seed in range(SPLITS):
        x, x_test, y, y_test = train_test_split(
            table.data[:, :2], table.target, test_size=0.2, random_state=seed
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # bounds are those of the rows, as in the example
            private = LinearRegression(random_state=seed).fit(x, y)
        for name, fit in (("private", private), ("not private", linear_model.LinearRegression().fit(x, y))):
            found[name].append(fit.score(x_test, y_test))
    for name, scores in found.items():
        low, middle, high = np.quantile(scores, [0.05, 0.5, 0.95])
        print(f"{name}: {middle:.2f} ({low:.2f} to {high:.2f}); published {PUBLISHED[name]:.2f}")


if __name__ == "__main__":
    main()
