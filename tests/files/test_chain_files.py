"""Chain files: as xarray and ArviZ read them, one seed or several; bytes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
import xarray
from arviz_base import labels, xarray_sel_iter
from arviz_stats.base import array_stats

from dpmc.data import chain_files
from dpmc.metrics.cell import convergence
from dpmc.sampling import loop
from kernels.cells import cell

GROUPS = {"posterior", "sample_stats", "private_diagnostics", "constant_data"}


def runs(method: str = "dp-penalty", **changes: Any) -> list[chain_files.Chains]:
    """Two seeds of a cell, with two chains each."""
    found = loop.sample(cell(method, chains=2, **changes), [0, 1])
    for run in found:
        run.attrs["study"] = "tests"
    return found


def arviz_labels(group: xarray.DataTree) -> list[str]:
    """Return ArviZ's labels of the quantities of a group."""
    content = group.to_dataset()
    labeller = labels.BaseLabeller()
    return [
        labeller.make_label_flat(*names) for names in xarray_sel_iter(content, skip_dims={"chain", "draw"})
    ]


def test_xarray_reads_a_chain_file_and_arviz_its_labels(tmp_path: Path) -> None:
    run = runs("dp-fast-mh published", thin=3)[1]
    chain_files.write_chains(tmp_path / "chain.nc", run)
    with xarray.open_datatree(tmp_path / "chain.nc") as tree:
        assert set(tree.children) == GROUPS
        assert arviz_labels(tree["posterior"]) == ["theta[0]", "theta[1]"]
        assert tree["posterior/chain"].values.tolist() == [2, 3]
        assert tree["posterior/draw"].values.tolist() == list(range(3, 40, 3))
        diverging = tree["sample_stats/diverging"]
        assert diverging.dtype == bool and diverging.dims == ("chain", "draw")
        np.testing.assert_array_equal(diverging, run.counts["diverging"] > 0)
        for name in chain_files.RANDOM_ROWS:
            np.testing.assert_array_equal(tree["sample_stats"][name], run.counts[name])
        np.testing.assert_array_equal(tree["constant_data/theta_0"], run.start)
        assert tree["private_diagnostics"].attrs["releasable"] == 0
        assert tree.identical(chain_files.tree(run))


def test_parameters_are_labelled_by_their_names(tmp_path: Path) -> None:
    run = replace(runs()[0], parameters=("slope", "größe"))
    chain_files.write_chains(tmp_path / "chain.nc", run)
    with xarray.open_datatree(tmp_path / "chain.nc") as tree:
        assert arviz_labels(tree["posterior"]) == ["theta[slope]", "theta[größe]"]
        starts = tree["constant_data/theta_0"].sel(parameter="slope")
        np.testing.assert_array_equal(starts, run.start[:, 0])
    np.testing.assert_array_equal(chain_files.read_chain(tmp_path / "chain.nc").draws, run.draws)


def test_seeds_are_joined_along_chain(tmp_path: Path) -> None:
    trees = []
    for seed, run in enumerate(runs()):
        chain_files.write_chains(tmp_path / f"{seed}.nc", run)
        trees.append(xarray.load_datatree(tmp_path / f"{seed}.nc"))
    together = xarray.concat(trees, dim="chain", combine_attrs="drop_conflicts")
    assert together["posterior/chain"].values.tolist() == [0, 1, 2, 3]
    draws = np.concatenate([tree["posterior/theta"] for tree in trees])
    np.testing.assert_array_equal(together["posterior/theta"], draws)
    assert "ledger" not in together.attrs or trees[0].attrs["ledger"] == trees[1].attrs["ledger"]
    assert "seed" not in together.attrs and together.attrs["n"] == 60
    largest = array_stats.rhat(together["posterior/theta"].values, chain_axis=0, draw_axis=1).max()
    assert convergence(draws)["rhat_max"] == pytest.approx(largest, rel=1e-12)


def test_equal_runs_have_equal_bytes(tmp_path: Path) -> None:
    for name in ("one", "other"):
        chain_files.write_chains(tmp_path / f"{name}.nc", runs(iterations=6000)[0])
        cell("dp-penalty").problem.write(tmp_path / f"{name}-data.nc")
    for kind in ("", "-data"):
        one, other = (tmp_path / f"{name}{kind}.nc" for name in ("one", "other"))
        assert one.read_bytes() == other.read_bytes()


def test_no_value_is_read_as_missing(tmp_path: Path) -> None:
    run = runs()[0]
    unusual = [np.nan, np.inf, netCDF4.default_fillvals["f8"], -0.0, 5e-324]
    run.draws.flat[: len(unusual)] = unusual
    run.totals["accepted"][0] = 2**62
    chain_files.write_chains(tmp_path / "chain.nc", run)
    read = chain_files.read_chain(tmp_path / "chain.nc")
    assert read.draws.tobytes() == run.draws.tobytes()
    assert read.totals["accepted"].tolist() == run.totals["accepted"].tolist()
    with xarray.open_datatree(tmp_path / "chain.nc") as tree:
        np.testing.assert_array_equal(tree["posterior/theta"], run.draws)


def test_a_chain_without_draws(tmp_path: Path) -> None:
    chain_files.write_chains(tmp_path / "chain.nc", runs(epsilon="0.0001", iterations=None)[0])
    assert chain_files.read_chain(tmp_path / "chain.nc").draws.shape == (2, 0, 2)


def test_files_of_schema_1_are_read(tmp_path: Path) -> None:
    run = runs()[0]
    chain_files.write_chains(tmp_path / "chain.nc", run)
    with netCDF4.Dataset(tmp_path / "chain.nc", "a") as file:
        file.schema = 1
    np.testing.assert_array_equal(chain_files.read_chain(tmp_path / "chain.nc").draws, run.draws)
