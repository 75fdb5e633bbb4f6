"""Densities of single chains: which chains, which draws, and the exact posterior beside them."""

import numpy as np
import paper_figures
import pytest

from dpmc.data import datasets
from dpmc.data.histogram import bin_counts, symmetric_kl
from dpmc.reports import plots
from dpmc.reports.plots.chains import chain_path
from dpmc.studies.figures import declared_figure
from figures.fast_tables import real_study
from figures.paper import write_chain
from figures.synthetic import NONE, draw, notes


def test_density_shows_the_first_10_000_draws_beside_the_exact_ones(tmp_path):
    study, results = real_study(), tmp_path / "results"
    cells = paper_figures.density_cells(study, declared_figure(study.path, "density"))
    assert {epsilon for _, _, epsilon in cells} == {"0.05", "inf"}
    models, (data, *chains) = plots.reads("density", study, results)
    assert models == [] and data == tmp_path / "data/dp-fast-mh/mixture/fresh-0.nc"
    assert chains == [chain_path(results, study, cell, 0) for cell in cells]

    problem = datasets.build("mixture", "mixture", "fresh-0", 100)
    problem.write(data)
    draws = np.random.default_rng(1).choice(
        problem.exact.reference, (1, paper_figures.PAPER_ITERATIONS + 1000)
    )
    draws[:, paper_figures.PAPER_ITERATIONS :] = 2.0  # what comes later is not shown
    for cell, path in zip(cells, chains, strict=True):
        write_chain(path, study, cell, 0, draws)
    panels = draw("density", study, NONE, results=results).axes[: 1 + len(cells)]
    shown, edges = draws[0, : paper_figures.PAPER_ITERATIONS], problem.exact.histogram_edges
    divergence, _ = symmetric_kl(shown, edges, problem.exact.histogram_counts)
    assert [notes(axes) for axes in panels[1:]] == [[f"KL {divergence:.2f}"]] * len(cells)
    most = paper_figures.smoothed(problem.exact.histogram_counts).max()
    expected = paper_figures.smoothed(bin_counts(shown, edges)[0]).T / most
    assert np.allclose(np.asarray(panels[1].collections[0].get_array()).reshape(expected.shape), expected)
    assert np.asarray(panels[0].collections[0].get_array()).max() == pytest.approx(1.0)
