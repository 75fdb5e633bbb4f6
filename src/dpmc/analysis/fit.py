"""A fit: what an answer says, with pictures and a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpmc.analysis.reading import Reading
from dpmc.common.files import given_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Fit(Reading):
    """The answer to a regression by noisy scores: read, compared, predicted with, drawn, reported.

    Arguments and attributes are those of `Reading`.
    """

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
