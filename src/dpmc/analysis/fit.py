"""What an answer says: coefficients, contrasts and predictions with intervals, in the table's own units."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpmc.algorithms.hyperparameters import calibrated, read
from dpmc.common.errors import DpmcError
from dpmc.common.files import given_path
from dpmc.common.logs import LOGGER
from dpmc.common.values import checked, count, shown
from dpmc.data.chain_files import ResultOrFile
from dpmc.models.regression import Regression
from dpmc.releases import files
from dpmc.results import answers
from dpmc.results.parameters import interval_sds

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

#: What e to the power of a coefficient is, by support of the family's outcomes.
RATIOS = {"binary": "odds ratio", "counts": "rate ratio"}
OUTCOMES = 4000  #: draws of an outcome's distribution
POINTS = 50  #: of a number's range, for a curve


class Summary(NamedTuple):
    """A table of estimates with intervals, and what it is about; printed, it is text."""

    heading: tuple[str, ...]
    table: pandas.DataFrame
    notes: tuple[str, ...]

    def to_frame(self) -> pandas.DataFrame:
        """Return the table."""
        return self.table

    def __repr__(self) -> str:
        table = ["", _text(self.table).to_string(), ""] if len(self.table) else []
        return "\n".join([*self.heading, *table, *self.notes])

    def _repr_html_(self) -> str:
        from html import escape

        lines = [f"<p>{escape(text)}</p>" for text in (*self.heading, *self.notes)]
        lines.insert(len(self.heading), self.table_html())
        return "\n".join(lines)

    def table_html(self) -> str:
        """Return the table as HTML."""
        return str(_text(self.table).to_html(border=0))


class Fit:
    """The answer to a regression by noisy scores: a posterior that is normal, its noise counted.

    Parameters
    ----------
    results
        Result of `dpmc.fit`, `dpmc.release` or `dpmc.sample` by noisy scores, or its file; or several such
        about one table, which make one posterior.
    model
        Its regression; None: made again from the file, which says it.
    prior_sd
        Another normal prior, as in `dpmc.posterior`.

    Attributes
    ----------
    trees, tree : the results as xarray.DataTree, and the first of them.
    files : names of the files of the results; of a result in memory none.
    model : the regression.
    names : names of the coefficients.
    mean, covariance : of coefficients in the table's own units, (p,) and (p, p).
    """

    def __init__(
        self,
        results: ResultOrFile | Sequence[ResultOrFile],
        *,
        model: Any = None,
        prior_sd: ArrayLike | None = None,
    ) -> None:
        self.trees, self._posterior, sds = answers.posterior_of_results(results, prior_sd)
        self.tree, attrs = self.trees[0], self.trees[0].attrs
        several = results if isinstance(results, list | tuple) else [results]
        self.files = tuple(Path(one).name for one in several if isinstance(one, str | Path))
        if model is None:
            name = answers.model_id(attrs)
            known = files.known_model(attrs.get("description"), name)
            if known is None or not isinstance(known.model, Regression):
                raise DpmcError(f"fit: {shown(name)}: the file does not say its regression; give model=…")
            model = known.model
        self.model, self.names = model, list(model.design.coefficients)
        self._theta = self._posterior.mean()[: len(self.names)]
        self._spread = self._posterior.covariance()[: len(self.names), : len(self.names)]
        (units, shift), p = model.own_units(), len(self.names)
        self.units, self._log_scale = units[:p, :p], shift[p:]  # of ln sd, if it is a parameter
        self.mean = self.units @ self._theta + shift[:p]
        self.covariance = self.units @ self._spread @ self.units.T
        self.prior_sd = np.asarray(model.prior_sd if sds is None else sds)
        answered = [answers.answer_of(tree) for tree in self.trees]
        self._method = answers.method_of(answered[0])
        without = self._method.covariance_without_noise(answered, sds)
        self._without_noise, self._hidden = (self.units @ each @ self.units.T for each in without)

    def to_frame(self, level: float = 0.9) -> pandas.DataFrame:
        """Return coefficients with intervals: a row each, and one of the residual sd if it is a parameter.

        Columns: estimate, sd, lower, upper (ends of the interval of probability `level`); without_noise,
        the sd of the same bounded answer without its noise, as it says itself; noise, the share of the
        variance that is noise. Both are NaN where the noisy information is less than half of its mean, as it
        is of rare groups: there it is mostly noise, or clamped. Of a family with ratios also ratio,
        ratio_lower, ratio_upper: e to the power of the coefficient.
        """
        table = self._frame(self.names, np.eye(len(self.names)), level)
        for log_scale in self._log_scale:
            mean, sd = self._posterior.mean()[-1], np.sqrt(self._posterior.covariance()[-1, -1])
            side, mean = interval_sds(level), mean + log_scale
            row = np.exp([mean, mean - side * sd, mean + side * sd])
            table.loc["residual sd", ["estimate", "lower", "upper"]] = row
            table.loc["residual sd", "sd"] = row[0] * sd
        return table

    def summary(self, level: float = 0.9) -> Summary:
        """Return coefficients with intervals, to be read."""
        table = self.to_frame(level)
        notes = [f"lower, upper: {level:.4g} interval; it counts sampling and the noise of privacy"]
        notes += ["without noise: sd of the same bounded answer without its noise; noise: its share"]
        notes[1] += "; – where rows are too few to say" if table.loc[self.names, "noise"].isna().any() else ""
        notes += ["estimates are of the family: skewed outcomes differ from least squares; see clip"]
        notes += [f"ratio: {self._ratio}, e to the power of the coefficient"] if self._ratio else []
        notes += self.remarks
        return Summary(tuple(self.heading), table, tuple(notes))

    def plot(self, path: str | Path | None = None, *, along: str | None = None, level: float = 0.9) -> Figure:
        """Draw coefficients with intervals, or expected outcomes along a column; write them to `path`."""
        from dpmc.analysis import forest  # matplotlib is slow to import

        figure = forest.forest(self, level) if along is None else forest.bands(self, along, level)
        if path is not None:
            figure.savefig(given_path(path, "plot"), dpi=200)
        return figure

    def report(self, path: str | Path, level: float = 0.9) -> Path:
        """Write one HTML file with question, guarantee, answer, picture, codebook and how to draw again."""
        from dpmc.analysis import report

        return report.write_report(self, path, level)

    @staticmethod
    def as_text(table: pandas.DataFrame) -> str:
        """Return a table of estimates as text, with four significant digits; of missing numbers "–"."""
        return str(_text(table).to_string())

    def contrast(self, *expressions: str, level: float = 0.9) -> pandas.DataFrame:
        """Return linear combinations of coefficients with intervals, such as "plan[private] - plan[public]".

        The coefficient of a reference level is 0.
        """
        vectors = [self._combination(text) for text in expressions]
        if not vectors:
            raise DpmcError("contrast: give a combination of coefficients")
        return self._frame(list(expressions), np.array(vectors), level)

    def predict(self, rows: Any, level: float = 0.9, seed: int = 0) -> pandas.DataFrame:
        """Return expected outcomes of new rows with intervals, and intervals of outcomes themselves.

        `rows` are a table with the predictors by name; no ε covers it. The frame has a row each: estimate,
        lower, upper of the expected outcome; outcome_lower, outcome_upper of an outcome, from draws by
        `seed`.
        """
        import pandas

        model, side = self.model, interval_sds(level)
        x = model.design.new_rows(rows, type(model).__name__)
        if (beyond := model.design.beyond_norm(x)) is not None and beyond.any():
            LOGGER.warning("predict: %s rows are longer than norm and are shortened", beyond.sum())
        z, offset = model.design(x), model.design.offset(x)
        eta, sd = z @ self._theta + offset, np.sqrt(((z @ self._spread) * z).sum(axis=1))
        ends = {"estimate": eta, "lower": eta - side * sd, "upper": eta + side * sd}
        table = pandas.DataFrame({name: model.mean(each) for name, each in ends.items()})
        generator = np.random.default_rng(checked("predict: seed", count, seed, 0))
        drawn = self._posterior.draws(generator, OUTCOMES)
        outcomes = np.array([model.outcomes(generator, theta, z, offset) for theta in drawn])
        sides = 0.5 - 0.5 * level, 0.5 + 0.5 * level
        table["outcome_lower"], table["outcome_upper"] = np.quantile(outcomes, sides, axis=0)
        return table

    def group_means(self, name: str, level: float = 0.9) -> pandas.DataFrame:
        """Return the expected outcome in each group of a category or 0/1 column, as `predict`.

        Other numbers are at their centre, other categories at their first level.
        """
        table, places = self.along(name, level)
        if not isinstance(places[0], str):
            raise DpmcError(f"group_means: {shown(name)} is no category and no 0/1 column")
        return table.drop(columns=["outcome_lower", "outcome_upper"]).set_axis(places)

    def along(self, name: str, level: float = 0.9) -> tuple[pandas.DataFrame, list[Any]]:
        """Return the expected outcome along a column, as `predict`, and its values or groups.

        Other columns are as in `group_means`.
        """
        x, places = usual_rows(self.model.design, name)
        return self.predict(x, level), places

    @property
    def is_release(self) -> bool:
        """Return whether all results are releases, which may be published."""
        return all(str(tree.attrs.get("mode")) == "release" for tree in self.trees)

    @property
    def heading(self) -> list[str]:
        """Return what was asked, of how many rows, and the guarantee, as lines."""
        about, kind = self.tree.attrs, type(self.model).__name__
        asked = self.model.design.formula or f"{self.model.columns[0]} by {', '.join(self.names)}"
        spent = [(float(tree.attrs["epsilon"]), float(tree.attrs["delta"])) for tree in self.trees]
        each = " and ".join(f"epsilon {epsilon:g}, delta {delta:.2g}" for epsilon, delta in spent)
        may = "a release: it may be published" if self.is_release else "of the lab: it must not be published"
        return [asked, f"{kind}, {int(about['n']):,} rows, noisy scores at {each}; {may}"]

    @property
    def remarks(self) -> list[str]:
        """Return warnings that follow from the answers."""
        found, n = [], int(self.tree.attrs["n"])
        for tree in self.trees:
            values = json.loads(str(tree.attrs["hyperparameters"]))
            budget = float(tree.attrs["epsilon"]), float(tree.attrs["delta"])
            method = read(
                self._method, calibrated(self._method, values, *budget, n, 1), "fit", self.model.dimension
            )
            found += method.remarks(answers.answer_of(tree), self.model, n)
        return list(dict.fromkeys(found))

    def __repr__(self) -> str:
        return repr(self.summary())

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    @cached_property
    def _ratio(self) -> str:
        """Return what e to the power of a coefficient is; "" if nothing."""
        return RATIOS.get(self.model.family.support, "")

    def _frame(self, names: list[str], vectors: np.ndarray, level: float) -> pandas.DataFrame:
        """Return a row for each combination (m, p) of coefficients."""
        import pandas

        side = interval_sds(level)
        mean = vectors @ self.mean
        forms = self.covariance, self._without_noise, self._hidden
        variance, without, hidden = (((vectors @ matrix) * vectors).sum(axis=1) for matrix in forms)
        sd, without = np.sqrt(variance), np.sqrt(np.where(hidden > 0.0, np.nan, without))
        columns = {"estimate": mean, "sd": sd, "lower": mean - side * sd, "upper": mean + side * sd}
        noise = np.clip(1.0 - (without / np.where(sd > 0.0, sd, np.inf)) ** 2, 0.0, 1.0)
        columns |= {"without_noise": without, "noise": noise}
        if self._ratio:
            ends = {"ratio": mean, "ratio_lower": columns["lower"], "ratio_upper": columns["upper"]}
            columns |= {name: np.exp(each) for name, each in ends.items()}
        return pandas.DataFrame(columns, index=pandas.Index(names))

    def _combination(self, expression: str) -> np.ndarray:
        """Return the vector (p,) of a combination of coefficients, by their names."""
        from formulaic.utils.constraints import LinearConstraints  # slow to import

        where = f"contrast: {shown(expression)}"
        zero = np.zeros(len(self.names))
        known = {f"{name}={levels[0]}": zero for name, levels in self.model.coding.levels.items()}
        known |= dict(zip(self.names, np.eye(len(self.names)), strict=True))
        known |= {name.replace("=", "[") + "]": vector for name, vector in known.items() if "=" in name}
        by_length = sorted(known, key=len, reverse=True)
        names = "|".join(rf"(?<![\w\]]){re.escape(name)}(?![\w\[:])" for name in by_length)
        text = re.sub(names, lambda match: f"_{by_length.index(match[0])}_", expression)
        places = [f"_{i}_" for i in range(len(known))]
        try:
            found = LinearConstraints.from_spec(text, variable_names=places)
            (weights,), (constant,) = found.constraint_matrix, found.constraint_values
            if constant or "=" in text:
                raise ValueError
        except Exception:  # formulaic's, of many types
            rule = f"must combine coefficients by +, -, and numbers times them: {', '.join(known)}"
            raise DpmcError(f"{where}: {rule}") from None
        return np.asarray(weights @ np.array([known[name] for name in by_length]), float)


def usual_rows(design: Any, name: str) -> tuple[np.ndarray, list[Any]]:
    """Return rows (m, columns) that differ in one column alone, and what it is there: numbers, or groups.

    Other numbers are at their centre, other categories at their first level, exposures at their centre,
    offsets at 0. A number goes over its bounds, or two scales on each side of its centre.
    """
    columns, numbers = list(design.columns), len(design.centre)
    if name not in columns[: numbers + len(design.coding.levels)]:
        raise DpmcError(f"along: {shown(name)} must be a predictor: {', '.join(columns)}")
    place, usual = columns.index(name), np.zeros(len(columns))
    usual[:numbers] = design.centre
    usual[list(design.binary)] = 0.0
    if design.shift is not None:
        usual[columns.index(design.shift.name)] = design.shift.centre
    if name in design.coding.levels:
        places = list(design.coding.levels[name])
    elif place in design.binary:
        places = ["0", "1"]
    else:
        low, high = design.centre[place] + np.array([-2.0, 2.0]) * design.scale[place]
        bounds = None if design.codebook is None else design.codebook.field(name).constraints
        low = low if bounds is None or bounds.minimum is None else bounds.minimum
        high = high if bounds is None or bounds.maximum is None else bounds.maximum
        places = np.linspace(low, high, POINTS).tolist()
    x = np.tile(usual, (len(places), 1))
    x[:, place] = range(len(places)) if isinstance(places[0], str) else places
    return x, places


def _text(table: pandas.DataFrame) -> pandas.DataFrame:
    """Return a table as texts with four significant digits, "–" for missing numbers."""
    texts = table.map(lambda x: x if isinstance(x, str) else "–" if np.isnan(x) else f"{x:.4g}")
    return texts.rename(columns=lambda name: name.replace("_", " "))
