"""A wrong hyperparameter of any method is named, in one line, before anything is computed."""

from typing import Any

import numpy as np
import pytest

from dpmc.common.errors import DpmcError
from dpmc.sampling.loop import sample
from kernels.cells import HYPERPARAMETERS, cell, problem, read

PENALTY, BARKER, FAST = "minibatch-penalty", "dp-barker", "dp-fast-mh published"


@pytest.mark.parametrize(
    ("method", "wrong", "message"),
    [
        (PENALTY, {"batch_size": 61}, "batch_size = 61: must be at most n = 60"),
        (BARKER, {"batch_size": 61}, "batch_size = 61: must be at most n = 60"),
        *((PENALTY, {"batch_size": b}, "must be a whole number") for b in (0, 2.5, -3, np.nan, np.inf)),
        *((BARKER, {"batch_size": b}, "is not a number") for b in ("all", True)),
        (PENALTY, {"sensitivity": "tigth"}, "sensitivity: 'tigth' must be one of thesis, tight"),
        (PENALTY, {"tau": 0}, "tau: 0 must be greater than 0"),
        (PENALTY, {"clip": np.inf}, "clip: inf must be greater than 0 .*to 1e"),
        (BARKER, {"clip_factor": 1.01}, "clip_factor: 1.01 must be in"),
        (BARKER, {"clip_factor": np.nan}, "clip_factor: nan must be in"),
        ("dp-sgld", {"drift": "half"}, "tests: drift: 'half' must be one of"),
        ("dp-sgnht", {"order": "new"}, "order: 'new' must be one of"),
        ("dp-hmc jittered", {"jitter": "sobol"}, "jitter: 'sobol' must be one of"),
        (FAST, {"clip": 1.0}, "clip: unknown hyperparameter"),
        (FAST, {"variant": "corrected"}, "clip: missing"),
        (FAST, {"batch_mean": -1}, "batch_mean: -1 must be greater than 0"),
        (FAST, {"most_rows": 0}, "most_rows: 0 must be a whole number"),
        (FAST, {"inverted_sensitivity": True}, "inverted_sensitivity: unknown"),
    ],
)
def test_a_wrong_hyperparameter_is_named(method: str, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(DpmcError, match=message) as caught:
        sample(cell(method, **wrong), [0])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("method", [PENALTY, BARKER])
def test_missing_ones_are_named_and_batches_of_few_or_all_rows_allowed(method: str) -> None:
    for missing in ("batch_size", "proposal_sd"):
        values = {key: value for key, value in HYPERPARAMETERS[method].items() if key != missing}
        with pytest.raises(DpmcError, match=f"{missing}: missing"):
            read(method, values)
    for b in (20 if method == BARKER else 1, 60):  # the accountant named has no bound for fewer
        run = sample(cell(method, problem(), batch_size=b), [0])[0]
        assert run.attributes["rows_per_evaluation"] == b
        assert np.isfinite(run.draws).all()
