"""Kill a release at random moments until it is finished; print what happened as JSON.

`python kills.py FOLDER KILLS SEED ALGORITHM`: each attempt is a fork of this process, which has loaded
everything. Every answer that gets noise is counted in a file before it is returned.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import dpmc
from dpmc.privacy import secure_noise
from dpmc.privacy.data_ledger import DataLedger
from dpmc.releases import facts
from dpmc.releases import files as release_files

FOLDER, KILLS, SEED, ALGORITHM = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
ROWS = np.column_stack([np.linspace(0.0, 3.0, 40), np.linspace(-1.0, 1.0, 40)])
MODEL = dpmc.LinearRegression("y", ["x"])
STEP = [0.1, 0.1]
VALUES: dict[str, dict[str, Any]] = {
    "dp-penalty": {"tau": 5.0, "clip": 1.0, "proposal_sd": STEP},
    "dp-mala": {
        **{"tau_l": 5.0, "tau_g": 5.0, "step_size": STEP, "mass": [1.0, 1.0], "clip_l": 1.0, "clip_g": 1.0},
        "reuse_gradients": True,
    },
}


def counting() -> None:
    """Append a byte for each call that draws noise, whatever becomes of its answer."""
    noisy_sum, log = secure_noise.noisy_sum, os.open(FOLDER / "answers", os.O_WRONLY | os.O_APPEND)

    def counted(total: np.ndarray, scale: np.ndarray) -> np.ndarray:
        os.write(log, bytes([len(total)]))
        return noisy_sum(total, scale)

    secure_noise.noisy_sum = counted


def attempt(output: Path | None, ledger: Path) -> None:
    """Make or continue the release."""
    dpmc.release(
        MODEL, ROWS, ALGORITHM, hyperparameters=VALUES[ALGORITHM], epsilon=8, delta=1e-3, iterations=120,
        ledger=ledger, output=output, progress=False, chains=2,
    )  # fmt: skip


def wait_for_answers(more: int) -> None:
    """Wait until this many more answers were counted, the release is finished, or nothing comes any more."""
    wanted, last = more + (FOLDER / "answers").stat().st_size, time.monotonic()
    size = 0
    while size < wanted and time.monotonic() - last < 20.0 and not (FOLDER / "release.nc").exists():
        time.sleep(0.0005)
        if (now := (FOLDER / "answers").stat().st_size) != size:
            size, last = now, time.monotonic()


def main() -> None:
    """Kill KILLS attempts, then let one finish."""
    facts.BLOCKS, facts.SPARE = 120, KILLS
    (FOLDER / "answers").touch()
    for name in ("ledger", "other"):
        DataLedger.create(FOLDER / name, 20.0, 1e-2)
    attempt(None, FOLDER / "other")  # loads what is imported on first use
    (FOLDER / "other").unlink()
    counting()
    chance, killed = random.Random(SEED), 0
    while not (FOLDER / "release.nc").exists():
        child = os.fork()
        if not child:
            try:
                attempt(FOLDER / "release.nc", FOLDER / "ledger")
                os._exit(0)
            except dpmc.DpmcError as error:
                print(error, file=sys.stderr, flush=True)
                os._exit(3)
        if killed < KILLS:
            wait_for_answers(chance.choice((0, 1, 1, 2, 5)))
            time.sleep(0.01 * chance.random())
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        killed += os.WIFSIGNALED(status)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status):
            break
    opened = DataLedger.open(FOLDER / "ledger")
    spare = KILLS * (1 + ALGORITHM.startswith("dp-mala"))
    result: dict[str, Any] = {
        "killed": killed,
        "spare": spare,
        "entries": len(opened.entries),
        "files": [name for name in os.listdir(FOLDER) if not name.endswith(".tmp")],  # of killed writers
    }
    result["answers"] = sum((FOLDER / "answers").read_bytes())
    if (FOLDER / "release.nc").exists():
        tree = release_files.read(FOLDER / "release.nc")
        result |= {key: int(tree.attrs[key]) for key in ("iterations", "forfeited")}
        result["problems"] = release_files.check(tree)
        result["ledger"] = json.loads(tree.attrs["ledger"])
        opened.verify(json.loads(tree.attrs["data_ledger"]))
        result["draws"] = tree["posterior/theta"].shape
    print(json.dumps(result))


if __name__ == "__main__":
    main()
