"""Tables that scripts make of a study's metrics: whose chains they read, and their numbers."""

import csv
import math
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

ROOT = Path(__file__).parents[2]
STUDY = {
    "title": "takes DP-HMC from another study",
    "delta": "0.1/n",
    "seeds": 4,
    "settings_of": "thesis",
    "models": {"flat-banana-2d": {"epsilons": [1], "tuning_epsilon": 1}},
    "methods": {
        "dp-penalty": {},
        "dp-hmc": {"from_study": "base"},
        "rwmh-2": {"algorithm": "rwmh", "options": {"clip": 2}, "epsilons": ["inf"], "iterations": 100},
    },
    "figures": [],
}
HEAD = ("study", "model", "method", "epsilon", "seed", "metric", "value")
OURS = [0.4, 0.5, 0.6, 0.8]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two studies, and the metrics of one: of its own chains and of all that the other has of the model."""
    (tmp_path / "config" / "studies").mkdir(parents=True)
    shutil.copytree(ROOT / "config" / "hyperparameters", tmp_path / "config" / "hyperparameters")
    (tmp_path / "config" / "studies" / "one.yaml").write_text(yaml.safe_dump(STUDY))
    base = {**STUDY, "methods": {"dp-penalty": {}, "dp-hmc": {}, "rwmh-2": STUDY["methods"]["rwmh-2"]}}
    (tmp_path / "config" / "studies" / "base.yaml").write_text(yaml.safe_dump(base))
    rows: list[tuple[Any, ...]] = []
    for study, shift in (("one", 0.0), ("base", 10.0)):
        for seed, value in enumerate(OURS):
            for method, epsilon in (("dp-penalty", "1"), ("rwmh-2", "inf")):
                rows.append((study, "flat-banana-2d", method, epsilon, seed, "mmd", value + shift))
    rows += [("base", "flat-banana-2d", "dp-hmc", "1", seed, "mmd", 0.3) for seed in range(4)]
    with (tmp_path / "metrics.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([HEAD, *rows])
    return tmp_path


def run(folder: Path, script: str, *arguments: str) -> tuple[list[dict[str, str]], str]:
    command = [sys.executable, str(ROOT / "workflow" / "scripts" / script), "one", "metrics.csv", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    with (folder / arguments[-1]).open() as file:
        return list(csv.DictReader(file)), done.stdout


def published_box(folder: Path, method: str, q1: float, median: float, q3: float) -> None:
    with (folder / "published" / "mmd.csv").open("a") as file:
        for name, value in (("q1", q1), ("median", median), ("q3", q3)):
            file.write(f"flat-banana-2d,{method},1,{name},{value},0\n")


def test_the_published_medians_are_compared_with_the_studys_own_chains(folder: Path) -> None:
    (folder / "published").mkdir()
    (folder / "published" / "mmd.csv").write_text("model,method,epsilon,statistic,value,index\n")
    (folder / "published" / "models.csv").write_text("model,n\nflat-banana-2d,100000\n")
    published_box(folder, "dp-penalty", 0.3, 0.35, 0.4)
    published_box(folder, "dp-hmc", 0.2, 0.2, 0.2)  # neither these nor the chains are spread
    found, summary = run(folder, "compare_published.py", "published", "table.csv")
    rows = {row["method"]: row for row in found}
    q1, median, q3 = np.quantile(OURS, [0.25, 0.5, 0.75])
    error = 1.2533 / 1.349 * math.hypot((q3 - q1) / 2.0, 0.1 / math.sqrt(20))
    assert int(rows["dp-penalty"]["chains"]) == 4
    assert float(rows["dp-penalty"]["median"]) == pytest.approx(median)
    assert float(rows["dp-penalty"]["error"]) == pytest.approx(error, rel=1e-5)
    assert float(rows["dp-penalty"]["z"]) == pytest.approx((median - 0.35) / error, rel=1e-4)
    assert float(rows["dp-hmc"]["median"]) == 0.3 and math.isnan(float(rows["dp-hmc"]["z"]))
    assert "| mmd | 1 |" in summary  # where the difference has no error it has no z
    z = float(rows["dp-penalty"]["z"])
    assert abs(z) < 3
    assert "1 of 2 published medians are within 3 standard errors; 1 have none.\n" in summary


def test_the_clipping_table_has_the_studys_own_chains(folder: Path) -> None:
    found, _ = run(folder, "clipping_table.py", "clipping.csv")
    assert [float(row["value"]) for row in found] == OURS
    assert {(row["algorithm"], row["clip_bound"], row["metric"]) for row in found} == {("rwmh", "2", "mmd")}
