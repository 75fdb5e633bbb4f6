"""Compare the cost of a release with that of the lab: a table of docs/explanation/performance.md.

    python benchmarks/release.py

Linear regression, three coefficients, one chain, CPU time of this process. An iteration's time is from the
difference of two runs; the shorter run is for start, prices and file. Half a minute on one core.
"""

import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measuring import table

import dpmc
from dpmc.privacy.data_ledger import DataLedger

MODEL = dpmc.LinearRegression("y", ["a", "b"], tempering=500, true_theta=[0.5, 1.0, 0.2])
STEP, EPSILON, DELTA = [0.02] * 3, 8.0, 1e-6
HMC = {"tau_l": 20.0, "tau_g": 20.0, "step_size": STEP, "mass": [1.0] * 3, "clip_l": 1.0, "clip_g": 1.0}
BATCH = {"tau": 80.0, "batch_size": 100, "clip": 1.0, "proposal_sd": STEP}
SETTINGS: dict[str, dict[str, Any]] = {
    "dp-penalty": {"tau": 20.0, "clip": 1.0, "proposal_sd": STEP},
    "dp-mala": HMC,
    "dp-hmc": {**HMC, "steps": 5},
    "minibatch-penalty": BATCH,
    "dp-barker": {"batch_size": 100, "proposal_sd": STEP},
    "dp-sgld": {"batch_size": 100, "clip": 1.0, "step_size": 0.1},
}
ITERATIONS = {1_000: (50, 1_050), 100_000: (10, 410)}  #: rows -> iterations of the shorter and the longer run


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU seconds of a call, and what it returns."""
    start = time.process_time()
    made = call()
    return time.process_time() - start, made


def compared(name: str, rows: np.ndarray, folder: Path) -> list[Any]:
    """Return ms of a run and of an iteration, lab and release, their ratio, and the price in δ and ε."""
    runs: dict[Callable[..., Any], list[float]] = {dpmc.sample: [], dpmc.release: []}
    for function, times in runs.items():
        more: dict[str, Any] = {"seed": 1} if function is dpmc.sample else {"ledger": folder / "rows.ledger"}
        for iterations in (ITERATIONS[len(rows)][0], *ITERATIONS[len(rows)]):  # the first only warms up

            def run(iterations: int = iterations, function: Any = function, more: Any = more) -> Any:
                settings = {"hyperparameters": SETTINGS[name], "iterations": iterations, "progress": False}
                return function(MODEL, rows, name, epsilon=EPSILON, delta=DELTA, **settings, **more)

            took, made = seconds(run)
            times.append(took)
    less, most = ITERATIONS[len(rows)]
    each = [1e3 * (times[2] - times[1]) / (most - less) for times in runs.values()]
    (price,) = json.loads(made.attrs["ledger"])["prices"]
    return [1e3 * runs[dpmc.sample][1], 1e3 * runs[dpmc.release][1], *each, each[1] / each[0], price]


def main() -> None:
    cells = []
    for n in ITERATIONS:
        rows = MODEL.simulate(np.random.default_rng(0), np.array(MODEL.true_theta), n)
        for name in SETTINGS:
            with tempfile.TemporaryDirectory() as folder:
                DataLedger.create(Path(folder) / "rows.ledger", 1e3, 0.5)
                *times, price = compared(name, rows, Path(folder))
            cells.append([name, n, *times, price["numbers"], price["epsilon"], price["delta"] / DELTA])
    table(
        (
            *("algorithm", "n", "run, lab, ms", "release, ms", "iteration, lab, ms", "release, ms", "ratio"),
            *("numbers", "price in ε", "in δ, relative"),
        ),
        cells,
    )


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
