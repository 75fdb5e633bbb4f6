"""The samplers by id, one per file.

An algorithm is a frozen dataclass of hyperparameters (`hyperparameters`) that implements
`dpmc.base.Algorithm`. To add one, add a file here and a line below: all else that is known of an algorithm is
said by its class and the declarations of its hyperparameters. An algorithm whose `needs` have `ratios=0` has
no acceptance test; `accepted` then means that a step did not diverge.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from dpmc.common.errors import DpmcError

if TYPE_CHECKING:
    from dpmc.base import Algorithm

# As text, so that a sampler and what it imports are loaded only when it is used.
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
    "noisy-scores": "dpmc.algorithms.noisy_scores:NoisyScores",
    "simulated-scores": "dpmc.algorithms.simulated_scores:SimulatedScores",
    "noisy-statistics": "dpmc.algorithms.noisy_statistics:NoisyStatistics",
    "adassp": "dpmc.algorithms.adassp:AdaSSP",
    "objective-perturbation": "dpmc.algorithms.objective_perturbation:ObjectivePerturbation",
    "dp-gradient-descent": "dpmc.algorithms.dp_gradient_descent:DPGradientDescent",
    "posterior-draws": "dpmc.algorithms.posterior_draws:PosteriorDraws",
    "public-rows": "dpmc.algorithms.public_rows:PublicRows",
}

ALGORITHMS = tuple(_CLASSES)


def with_fact(fact: str) -> list[str]:
    """Return the names of the algorithms whose class says that it has a fact, such as `is_of_regressions`."""
    return [name for name in ALGORITHMS if getattr(algorithm_class(name), fact, False)]


def algorithm_class(name: str) -> "type[Algorithm]":
    """Return the class of an algorithm id; raise DpmcError for an unknown id."""
    if name not in _CLASSES:
        raise DpmcError(f"algorithm: {name!r} is unknown; known: {', '.join(ALGORITHMS)}")
    module, cls = _CLASSES[name].split(":")
    return getattr(import_module(module), cls)
