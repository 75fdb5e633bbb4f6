"""Valid inputs: a folder with one small file of each kind, and for each command arguments that use them.

The model is the user's own, so that nothing is compiled; there are 20 rows, and chains of 5 iterations.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

from fuzz.running import run

STUDY = """
title: A study of nothing
epsilon_kind: total
delta: 0.1/n
seeds: 2
chains: 1
settings_of: tiny
tuning: {mode: pinned, seeds: 2, trials: 2}
models:
  own: {model: "own:Normal", data: fresh-0, epsilons: [1, 4], tuning_epsilon: 4, settings_of: own}
  flat-banana-2d: {epsilons: [1, 2], tuning_epsilon: 2}
methods:
  dp-penalty: {settings_of: dp-penalty, most_iterations: 9, thin: 1, accountant: tight}
  dp-mala: {models: [own], most_iterations: 9}
  rwmh: {models: [own], iterations: 5, epsilons: [inf], options: {clip: 3, acceptance: barker}}
figures: [mmd-easy, acceptance-easy]
"""
HYPERPARAMETERS = """
dp-penalty:
  own: {tau: 4, clip: 3, proposal_sd: 0.1}
  flat-banana-2d: {tau: 0.2, clip: 2, proposal_sd: 0.008}
dp-mala:
  own: {tau_l: 4, tau_g: 4, step_size: 0.1, mass: 1, clip_l: 3, clip_g: 3}
rwmh:
  own: {proposal_sd: [0.1, 0.2]}
"""
MODEL = '''
import numpy as np

class Normal:
    """x ~ N(theta, 1) in two dimensions."""
    dimension = 2
    columns = 2
    n = 20
    true_theta = np.array([1.0, -1.0])

    def log_likelihood(self, theta, rows):
        return -0.5 * ((rows - theta) ** 2).sum(axis=1)

    def log_likelihood_gradient(self, theta, rows):
        return rows - theta

    def log_prior(self, theta):
        return -0.005 * (theta**2).sum()

    def log_prior_gradient(self, theta):
        return -0.01 * theta

    def simulate(self, generator, theta, n):
        return theta + generator.standard_normal((n, 2))
'''
MINE = "tau: 4\nclip: 3\nproposal_sd: [0.1, 0.2]\n"

PAIR = "--study tiny --model own"
CELL = f"{PAIR} --method dp-penalty"
CHAIN = "--seed 0 --iterations 5 --quiet --output new.nc"
#: name -> arguments, and the files that they write
CASES = {
    "budget": (f"budget {CELL} --epsilon 4 --json", ""),
    "cost": (f"budget {CELL} --iterations 7 --delta 1e-4 --n 50 --hyperparameters mine.yaml", ""),
    "sample": (
        f"sample {CELL} --epsilon 4 --data own.nc --seed 0 1 --thin 2 --iterations 6 --checkpoint-seconds 9 "
        "--output new-{seed}.nc",
        "new-0.nc new-1.nc",
    ),
    "mine": (f"sample {CELL} --epsilon 4 --data rows.csv --hyperparameters mine.yaml {CHAIN}", "new.nc"),
    "gradients": (f"sample {PAIR} --method dp-mala --epsilon 4 --data rows.csv {CHAIN}", "new.nc"),
    "data": (f"data {PAIR} --output new.nc", "new.nc"),
    "rows": (f"data {PAIR} --rows rows.csv --output new.nc", "new.nc"),
    "tune": (f"tune {CELL} --output new.yaml --quiet", "new.yaml"),
    "evaluate": (
        "evaluate --study tiny --data own.nc --chains chain-0.nc chain-1.nc --output new.csv",
        "new.csv",
    ),
    "trace": ("trace --study tiny --data own.nc --chains chain-0.nc --output new.csv", "new.csv"),
    "plot": ("plot --study tiny --figure mmd-easy --metrics metrics.csv --output new.svg", "new.svg"),
    "models": ("plot --study tiny --figure models --output new.csv", "new.csv"),
    "baselines": (f"evaluate {PAIR} --baselines --data own.nc --output new.csv", "new.csv"),
}


@dataclass
class Case:
    """One input: a folder of its own with all files, and the arguments of a command."""

    folder: Path
    command: str  # of CASES
    argv: list[str]
    outputs: list[str]  # that a success writes

    def path(self, name: str) -> Path:
        """Return a file of the folder."""
        return self.folder / name

    def option(self, name: str, *values: str) -> None:
        """Give an option other values; put it at the end if it is not there."""
        begin = self.argv.index(name) if name in self.argv else len(self.argv)
        end = begin + 1
        while end < len(self.argv) and not self.argv[end].startswith("--"):
            end += 1
        self.argv[begin:end] = [name, *values]


def case(template: Path, folder: Path, command: str) -> Case:
    """Make a valid input in a new folder."""
    shutil.copytree(template, folder)
    argv, outputs = CASES[command]
    return Case(folder, command, argv.split(), outputs.split())


def write_template(folder: Path) -> Path:
    """Write a file of each kind; those that dpmc writes are written by its commands.

    Raises AssertionError where one of them fails.
    """
    for name, text in {
        "config/studies/tiny.yaml": STUDY,
        "config/hyperparameters/tiny.yaml": HYPERPARAMETERS,
        "own.py": MODEL,
        "mine.yaml": MINE,
        "metrics.csv": _metrics(),
        "precious.txt": "nobody else has this\n",
        "rows.csv": "".join(f"{0.9 + 0.1 * i},{-2.0 + 0.05 * i * i}\n" for i in range(20)),
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    chains = f"sample {CELL} --epsilon 4 --data own.nc --iterations 6 --seed 0 1 --output chain-{{seed}}.nc"
    for command in (f"data {PAIR} --output own.nc", chains):
        ended = run(command.split(), folder)
        assert ended.code == 0, f"{command}: {ended.errors}"
    return folder


def _metrics() -> str:
    """Return a table of metrics as `dpmc evaluate` writes it."""
    lines = ["study,model,method,epsilon,seed,metric,value"]
    for epsilon in (1, 2):
        for seed in range(2):
            cell = f"tiny,flat-banana-2d,dp-penalty,{epsilon},{seed}"
            lines += [f"{cell},iterations,40", f"{cell},mmd,{0.3 / epsilon + 0.05 * seed}"]
            lines += [f"{cell},acceptance_rate,0.5", f"{cell},ratio_clip_fraction,0.01"]
        lines.append(f"tiny,flat-banana-2d,dp-penalty,{epsilon},,status,rhat_max: too few chains")
    lines += [f"tiny,flat-banana-2d,baseline,,{seed},mmd,0.0{seed + 2}" for seed in range(3)]
    return "\n".join(lines) + "\n"
