"""A wrong hyperparameter of any method is named, in one line, before anything is computed."""

from typing import Any

import numpy as np
import pytest

from dpmc.common.errors import DpmcError
from dpmc.sampling.loop import sample
from kernels.cells import cell, problem

PENALTY, BARKER, FAST = "minibatch-penalty", "dp-barker", "dp-fast-mh published"


@pytest.mark.parametrize(
    ("method", "wrong", "message"),
    [
        (PENALTY, {"batch_size": 61}, "batch_size = 61: must be at most n = 60"),
        (PENALTY, {"batch_size": 2.5}, "must be a whole number"),
        (BARKER, {"batch_size": "all"}, "is not a number"),
        (BARKER, {"clip_factor": 1.01}, "clip_factor: 1.01 must be in"),
        (PENALTY, {"sensitivity": "tigth"}, "sensitivity: 'tigth' must be one of thesis, tight"),
        (PENALTY, {"clip": np.inf}, "clip: inf must be greater than 0 .*to 1e"),
        (FAST, {"clip": 1.0}, "clip: unknown hyperparameter"),
        (BARKER, {"clip_fctor": 1.0}, "clip_fctor: unknown .* algorithm: did you mean clip_factor\\?"),
        (BARKER, {"zzz": 1.0}, "zzz: unknown hyperparameter for this algorithm; it has .*batch_size"),
        (FAST, {"variant": "corrected"}, "clip: missing"),
        (
            "hmc",
            {"jitter": "sobol"},
            "jitter: 'sobol' must be none or halton, or two numbers .a, b., 0 < a < b",
        ),
        ("hmc", {"jitter": [1.2, 0.8]}, "jitter: .1.2, 0.8. must be none or halton, or two numbers"),
        ("hmc", {"jitter": [0.0, 1.0]}, "jitter: .0.0, 1.0. must be"),
        ("hmc", {"jitter": [0.8]}, "jitter: .0.8. must be"),
        ("hmc", {"jitter": 0.8}, "jitter: 0.8 must be"),
        ("hmc", {"jitter": [0.8, float("inf")]}, "jitter: inf must be greater than 0"),
        ("hmc", {"jitter": [0.8, float("nan")]}, "jitter: .0.8, nan. must be"),
        ("dp-mala", {"jitter": [0.8, 1.2]}, "jitter: unknown hyperparameter"),
    ],
)
def test_a_wrong_hyperparameter_is_named(method: str, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(DpmcError, match=message) as caught:
        sample(cell(method, **wrong), [0])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("method", [PENALTY, BARKER])
def test_batches_of_few_or_all_rows_are_allowed(method: str) -> None:
    for b in (20 if method == BARKER else 1, 60):  # the accountant named has no bound for fewer
        run = sample(cell(method, problem(), batch_size=b), [0])[0]
        assert run.attrs["rows_per_evaluation"] == b
        assert np.isfinite(run.draws).all()
