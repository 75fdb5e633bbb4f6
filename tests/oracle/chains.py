"""A few chains of every sampler on every model it runs on, to compare later code with earlier code.

`python tests/oracle/chains.py` in a checkout's root writes `chains.npz` beside this file. The file here was
written by the code of commit b8c4588; `test_oracle.py` compares the present code with it. To be rewritten
only when draws change on purpose. Models whose rows are pictures are left out: they would have to be fetched.
"""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from netCDF4 import Dataset

from dpmc.cli import main as cli
from dpmc.studies import load_study

FILE = Path(__file__).with_name("chains.npz")
MOST = 2500  #: iterations of a chain, at most
WHOLE = 60  #: positions that are kept one by one, from the first on; enough to make single iterations again
EVERY = 50  #: of the other positions so many-th is kept
SEED = 0

#: Methods that differ in a clip bound or another number alone: these stand for all.
LEFT_OUT = ("-0.5", "-2", "-4", "-6", "-8", "-10", "-0.025", "-0.05", "-0.1", "-0.15", "-5", "-15", "-20")
LEFT_OUT += ("-50", "-100", "-75", "-150", "-225", "-450", "-900")
STUDIES = ("thesis", "thesis-tight", "dp-hmc", "dp-fast-mh")


def cells() -> Iterator[tuple[str, str, str, str]]:
    """Study, model, method and epsilon of each model and method; the epsilon where it is tuned, if it is."""
    for name in STUDIES:
        study = load_study(name)
        epsilons: dict[tuple[str, str], list[str]] = {}
        for model, method, epsilon in study.cells():
            if not method.endswith(LEFT_OUT) and "k-" not in method:
                epsilons.setdefault((model, method), []).append(epsilon)
        for (model, method), some in epsilons.items():
            tuned = study.model(model).tuning_epsilon
            yield name, model, method, tuned if tuned in some else some[-1]


def chain(study: str, model: str, method: str, epsilon: str, data: Path) -> dict[str, np.ndarray]:
    """Return positions, decisions and rows clipped of a cell's chains, and its attributes as JSON.

    `data` is the folder of the models' data sets, which are made where they are missing.
    """
    rows = data / study / f"{model}.nc"
    common = ["--study", study, "--model", model]
    if not rows.exists() and cli.main(["data", *common, "--output", str(rows)]):
        raise RuntimeError(f"{study} {model}: no data")
    with tempfile.TemporaryDirectory() as folder:
        output = f"{folder}/chain.nc"
        command = ["sample", *common, "--method", method, "--epsilon", epsilon, "--seed", str(SEED)]
        command += ["--data", str(rows), "--quiet", "--thin", "1", "--output", output]
        if cli.main([*command, "--iterations", str(MOST)]) and cli.main(command):
            raise RuntimeError(f"{study} {model} {method}: no chain")
        with Dataset(output) as file:
            return _kept(file)


def _kept(file: Any) -> dict[str, np.ndarray]:
    draws = np.asarray(file["posterior/theta"][:])
    kept = np.arange(1, draws.shape[1] + 1)
    kept = kept[(kept <= WHOLE) | (kept % EVERY == 0) | (kept == draws.shape[1])]
    private = file["private_diagnostics"]
    clipped = [np.asarray(private[f"{kind}_clipped"][:]) for kind in ("ratio", "gradient")]
    names = ("epsilon", "iterations", "budget_iterations", "delta", "n", "status", "accountant")
    about = {name: file.getncattr(name) for name in names}
    plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in about.items()}
    return {
        "start": np.asarray(file["constant_data/theta_0"][:]),
        "iteration": kept,
        "theta": draws[:, kept - 1],
        "accepted": np.packbits(np.asarray(file["sample_stats/acceptance_rate"][:]) > 0.5, axis=1),
        "clipped": np.stack([counts[:, kept - 1] for counts in clipped]).astype(np.int32),
        "clipped_total": np.array([counts.sum(axis=1) for counts in clipped]),
        "about": np.array(json.dumps(plain)),
    }


def read() -> dict[str, dict[str, np.ndarray]]:
    """Return the stored chains by "study/model/method/epsilon"."""
    found: dict[str, dict[str, np.ndarray]] = {}
    with np.load(FILE) as saved:
        for key in saved.files:
            cell, _, name = key.rpartition("/")
            found.setdefault(cell, {})[name] = saved[key]
    return found


def main() -> None:
    """Write the file of this checkout's code."""
    kept = {}
    with tempfile.TemporaryDirectory() as data:
        for cell in cells():
            try:
                found = chain(*cell, Path(data))
            except RuntimeError as error:
                print(f"left out: {error}")
                continue
            kept |= {f"{'/'.join(cell)}/{name}": values for name, values in found.items()}
            print("/".join(cell), json.loads(str(found["about"]))["iterations"], flush=True)
    np.savez_compressed(FILE, **kept)


if __name__ == "__main__":
    main()
