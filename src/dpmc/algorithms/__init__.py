"""The samplers, one a file, by their ids.

An algorithm is a NamedTuple of hyperparameters with `read(settings)`; `normals`, `uniforms`, `extras`,
`evaluations`, `noisy_gradients` (what an iteration consumes); `releases(n)`, its events as data; and
`iterate`, one iteration of several chains, which reads like the paper and also runs compiled.
`draws_version` is raised whenever a change alters the draws, so that finished chains are made anew.
"""

from importlib import import_module
from typing import Any

from dpmc.errors import DpmcError

_CLASSES = {
    "rwmh": "dpmc.algorithms.rwmh:RWMH",
    "hmc": "dpmc.algorithms.hmc:HMC",
    "dp-penalty": "dpmc.algorithms.dp_penalty:DPPenalty",
    "dp-penalty-guided": "dpmc.algorithms.dp_penalty_guided:DPPenaltyGuided",
    "dp-hmc": "dpmc.algorithms.dp_hmc:DPHMC",
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
