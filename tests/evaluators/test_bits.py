"""A chain's sums have the same bits whichever chains are beside it, in whatever order."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmc import evaluators
from evaluators import cases
from evaluators.cases import MODELS, Problem

CHAINS = 20


def answers(evaluator: Any, asked: Problem, chosen: Any) -> list[np.ndarray]:
    """Every sum and count of the chosen chains."""
    theta, proposal = asked.theta[chosen], asked.proposal[chosen]
    generator = np.random.default_rng(6)
    words = generator.integers(0, 2**64, (CHAINS, 30), dtype=np.uint64)[chosen]
    bound = generator.uniform(0.05, 1.0, CHAINS)[chosen]
    return [
        *evaluator.ratio_sums(theta, proposal, bound),
        *evaluator.gradient_sums(theta, 1.2),
        *evaluator.gradient_sums(theta, np.inf),
        *evaluator.batch_ratio_sums(theta, proposal, bound, words),
        *evaluator.batch_gradient_sums(theta, 1.2, words),
    ]


@pytest.mark.parametrize("kinds", [4, CHAINS], ids=["moves of all components", "moves of every kind"])
@pytest.mark.parametrize("name", MODELS)
def test_a_chain_is_the_same_alone_beside_others_and_in_any_order(name: str, kinds: int) -> None:
    asked = cases.problem(name, 2600, chains=CHAINS)
    chains = np.arange(CHAINS) % 9 < kinds
    asked = asked._replace(proposal=np.where(chains[:, None], asked.proposal, asked.proposal[:1]))
    evaluator = evaluators.evaluator_of(asked.model, asked.rows)
    together = answers(evaluator, asked, np.arange(CHAINS))
    order = np.random.default_rng(7).permutation(CHAINS)
    for chosen in ([0], [13], order[:7], order[:8], order[:9], order):
        for some, all_ in zip(answers(evaluator, asked, chosen), together, strict=True):
            assert some.tobytes() == all_[chosen].tobytes()


CODE = """
import hashlib
import numpy as np
from dpmc import evaluators
from evaluators.cases import problem

asked, digest = problem("gaussian, 2", 5000), hashlib.sha256()
evaluator = evaluators.evaluator_of(asked.model, asked.rows)
for bound in (1e-3, 0.3, 2.0):
    digest.update(evaluator.ratio_sums(asked.theta, asked.proposal, np.full(9, bound))[0].tobytes())
print(digest.hexdigest())
"""


def test_code_from_numbas_cache_gives_the_bits_of_code_just_compiled(tmp_path: Path) -> None:
    """It did not where one copy of a called function was optimised alone, and another within its caller."""
    tests = str(Path(__file__).parents[1])
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": tests}
    command = [sys.executable, "-c", CODE]
    compiled, cached = (subprocess.check_output(command, env=environment) for _ in range(2))
    assert list(tmp_path.rglob("*.nbc")) and compiled == cached
