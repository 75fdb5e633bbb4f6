"""The samplers, one a file, by their ids.

An algorithm is a frozen dataclass of hyperparameters (`hyperparameters`) that keeps the contract of
`dpmc.base.Algorithm`. To add one: a file here, and a line below. One that asks for no log ratio (`needs`) has
no acceptance test: `accepted` then means that a step did not diverge. `calibrate(values, epsilon, delta, n)`,
where there is one, returns the hyperparameters `values` with noise such that one iteration is (ε, δ).
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from dpmc.errors import DpmcError

_CLASSES = {
    "rwmh": "dpmc.algorithms.rwmh:RWMH",
    "hmc": "dpmc.algorithms.hmc:HMC",
    "dp-penalty": "dpmc.algorithms.dp_penalty:DPPenalty",
    "dp-penalty-guided": "dpmc.algorithms.dp_penalty_guided:DPPenaltyGuided",
    "minibatch-penalty": "dpmc.algorithms.minibatch_penalty:MinibatchPenalty",
    "minibatch-penalty-guided": "dpmc.algorithms.minibatch_penalty_guided:MinibatchPenaltyGuided",
    "dp-barker": "dpmc.algorithms.dp_barker:DPBarker",
    "dp-hmc": "dpmc.algorithms.dp_hmc:DPHMC",
    "dp-mala": "dpmc.algorithms.dp_mala:DPMALA",
    "dp-sgld": "dpmc.algorithms.dp_sgld:DPSGLD",
    "dp-sgnht": "dpmc.algorithms.dp_sgnht:DPSGNHT",
    "tuna-mh": "dpmc.algorithms.tuna_mh:TunaMH",
    "dp-fast-mh": "dpmc.algorithms.dp_fast_mh:DPFastMH",
    "dp-fast-mh-full": "dpmc.algorithms.dp_fast_mh_full:DPFastMHFull",
}

ALGORITHMS = tuple(_CLASSES)


def algorithm_class(name: str) -> Any:
    """Return the class of an algorithm id.

    Raises DpmcError for an id that does not exist.
    """
    if name not in _CLASSES:
        raise DpmcError(f"algorithm: {name!r} is unknown; known: {', '.join(ALGORITHMS)}")
    module, cls = _CLASSES[name].split(":")
    return getattr(import_module(module), cls)


class _Package(ModuleType):
    """This package; called, as `dpmc.algorithms()`, it lists the algorithms."""

    def __call__(self) -> Any:
        from dpmc.algorithms.listing import listing

        return listing()


sys.modules[__name__].__class__ = _Package
