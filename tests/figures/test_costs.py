"""The MMD against CPU seconds: the share of each run in the seconds of its job."""

from pathlib import Path

import pytest

from figures.synthetic import THREE, draw, metrics, study

MODEL = "circle"


def test_a_run_costs_its_share_of_the_jobs_by_iterations(tmp_path: Path) -> None:
    of = study((MODEL,), THREE)
    lengths = {(MODEL, "dp-hmc", str(epsilon)): 100 * epsilon for epsilon in range(1, 7)}
    table = metrics(of, lengths, seeds=2)
    folder = tmp_path / "logs/made-up/sampling" / MODEL
    (folder / "dp-penalty").mkdir(parents=True)
    head = "wall_seconds\tcpu_seconds\tpeak_mib\n"
    (folder / "dp-hmc.tsv").write_text(f"{head}9\t8.4\t250\n")
    (folder / "dp-penalty/eps-1.tsv").write_text(f"{head}9\t1.0\t250\n")  # a job for each cell
    (folder / "dp-penalty/eps-2.tsv").write_text(f"{head}9\t2.0\t250\n")
    (axes,) = draw("mmd-by-cost", of, table, results=tmp_path / "results").axes
    penalty, hmc = (box.lines[0] for box in axes.containers)  # the third method was not measured
    # two runs for each of 100, 200, …, 600 iterations: 2 ms an iteration
    assert list(hmc.get_xdata()) == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0, 1.2])
    assert list(penalty.get_xdata()) == pytest.approx([3.0 / 12])  # runs of equal length are one point
    mmd = table[(table.metric == "mmd") & (table.method == "dp-hmc")].astype({"value": float})
    assert list(hmc.get_ydata()) == pytest.approx(list(mmd.groupby("epsilon").value.median()))
