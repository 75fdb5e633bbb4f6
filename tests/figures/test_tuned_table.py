"""The table of tuned settings: every number against one computed by hand."""

import itertools
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tuned_table
import yaml

from dpmc.metrics.table import typed
from dpmc.studies import Study
from dpmc.studies.whole import Results
from figures.synthetic import Table, study

MODEL = "flat-banana-2d"
HYPERPARAMETERS = f"""
dp-penalty: {{{MODEL}: {{tau: 0.1, clip: 1, proposal_sd: 0.01}}}}
dp-sgld: {{{MODEL}: {{step_size: 1, clip: 1, batch_size: 100}}}}
"""
# Five chains: quartiles 0.3 and 0.5, median 0.4; tuned 0.1 less, or 0.1 more.
BASE = (0.2, 0.3, 0.4, 0.5, 0.7)
ERROR = 1.2533 * 0.2 / 1.349 / math.sqrt(5)


def made_up() -> Study:
    """Two pairs and a method without a partner, on one model tuned at ε = 2."""
    names = ("dp-penalty", "dp-sgld", "dp-hmc")
    tuned = {f"{name}-tuned": {"algorithm": name, "hyperparameters": "tuned"} for name in names[:2]}
    models = {MODEL: {"epsilons": [1, 2, 3], "tuning_epsilon": 2}}
    return study(models, {**dict.fromkeys(names, {}), **tuned})


def frame(shifts: dict[tuple[str, str], float | None]) -> pd.DataFrame:
    """Metrics; `shifts`: (method, ε) -> addition to each MMD, None: no MMD; default 0."""
    table = Table()
    for method, epsilon in itertools.product(made_up().methods, ("1", "2", "3")):
        shift, tuned = shifts.get((method, epsilon), 0.0), method.endswith("-tuned")
        for seed, value in enumerate(BASE):
            table.add(MODEL, method, epsilon, seed, "iterations", (200 if tuned else 100) + seed)
            table.add(MODEL, method, epsilon, seed, "acceptance_rate", (0.3 if tuned else 0.5) + 0.01 * seed)
            table.add(MODEL, method, epsilon, seed, "gradient_clip_fraction", 0.06 + 0.001 * seed)
            if not method.startswith("dp-sgld"):
                table.add(MODEL, method, epsilon, seed, "ratio_clip_fraction", 0.02 + 0.001 * seed)
            if shift is not None:
                table.add(MODEL, method, epsilon, seed, "mmd", value + shift)
    return table.frame()


def test_the_numbers_are_those_computed_by_hand() -> None:
    of = made_up()
    table = typed(frame({("dp-penalty-tuned", "1"): -0.1}))
    rows = list(tuned_table.rows(of, Results(table, of)))
    names = [(row["model"], row["method"], row["epsilon"], row["tuned_at"]) for row in rows]
    assert names == [(MODEL, m, e, "2") for m in ("dp-penalty", "dp-sgld") for e in ("1", "2", "3")]
    row = rows[0]
    assert (row["chains"], row["before_iterations"], row["tuned_iterations"]) == (5, 100, 200)
    assert (row["before_mmd"], row["tuned_mmd"]) == pytest.approx((0.4, 0.3))
    assert row["before_mmd_error"] == pytest.approx(ERROR) == row["tuned_mmd_error"]
    assert (row["before_acceptance_rate"], row["tuned_acceptance_rate"]) == pytest.approx((0.52, 0.32))
    assert row["before_clip_fraction"] == pytest.approx(0.022)
    assert rows[3]["tuned_clip_fraction"] == pytest.approx(0.062)  # of gradients: DP-SGLD has no ratios
    assert row["difference"] == pytest.approx(-0.1)
    assert row["difference_error"] == pytest.approx(math.sqrt(2) * ERROR)
    assert row["z"] == pytest.approx(-0.1 / math.sqrt(2) / ERROR)


def test_the_table_of_a_study_is_written_and_missing_numbers_are_empty(tmp_path: Path) -> None:
    table = frame({("dp-penalty-tuned", "1"): -0.3, ("dp-sgld-tuned", "3"): None})
    table["study"] = np.where(table.method.str.endswith("-tuned"), "mine", "base")
    table.to_csv(tmp_path / "metrics.csv", index=False)
    for place in ("studies", "hyperparameters"):
        (tmp_path / "config" / place).mkdir(parents=True)
    for name in ("base.yaml", "base.tuned.yaml"):
        (tmp_path / "config/hyperparameters" / name).write_text(HYPERPARAMETERS)
    head = {"title": "a", "delta": "0.1/n", "seeds": 5, "settings_of": "base", "figures": []}
    head["models"] = {MODEL: {"epsilons": [1, 2, 3], "tuning_epsilon": 2}}
    base: dict[str, Any] = {"dp-penalty": {}, "dp-sgld": {}}
    mine = {method: {"from_study": "base"} for method in base}
    mine |= {f"{method}-tuned": {"algorithm": method, "hyperparameters": "tuned"} for method in base}
    for name, methods in (("base", base), ("mine", mine)):
        content = yaml.safe_dump({**head, "methods": methods}, sort_keys=False)
        (tmp_path / f"config/studies/{name}.yaml").write_text(content)
    command = [sys.executable, str(Path(tuned_table.__file__)), "mine", "metrics.csv", "table.csv"]
    subprocess.run(command, cwd=tmp_path, check=True)
    written = pd.read_csv(tmp_path / "table.csv")
    assert list(written) == tuned_table.COLUMNS and len(written) == 6
    assert written["difference"][0] == pytest.approx(-0.3)
    assert written[["tuned_mmd", "z"]].isna().sum().to_list() == [1, 1] and written["chains"][5] == 0
