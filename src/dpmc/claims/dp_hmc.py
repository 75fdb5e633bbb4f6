"""What the DP-HMC paper says about its experiments, and the numbers that decide it.

Words that leave room have one meaning here. About equal: the geometric mean over ε of the ratio of medians is
within `EQUAL`. Much worse: that ratio is above `MUCH`. Hardly any effect: the median MMD changes by less than
`LITTLE` (of at most about 0.89; exact samples differ by about 0.02). What the paper says of DP-SGLD and
DP-SGNHT is asked of both versions: corrected, and with the mistakes of the published code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dpmc.claims import Case, Claim, Numbers, case
from dpmc.figures.labels import (
    clip_bounds,
    clipping_models,
    compared_models,
    main_methods,
    published_variant,
)

SOURCE = "Differentially Private Hamiltonian Monte Carlo (2021), the DP-HMC paper"
EQUAL = 1.25
MUCH = 1.5
LITTLE = 0.05
GUIDELINE = 0.2  # of the rows, clipped
CONVERGED = 1.05
GAP = (0.2, 0.6)
METRICS = {"mmd": "MMD", "mean_error": "mean error"}
INF = "inf"


def claims() -> list[Claim]:
    """Return the claims, in the order of the paper; each asks the study for the labels that it speaks of."""
    return [
        Claim(
            "banana-equal",
            "4.1, Figure 1",
            "On the banana DP-HMC and DP penalty do about equally well.",
            f"DP-HMC over DP penalty, geometric mean over ε: within {EQUAL} of 1 either way",
            "comparison",
            lambda numbers: _pair(numbers, "paper-banana", "dp-hmc", ("dp-penalty",), _about_equal),
        ),
        Claim(
            "banana-sgld-sgnht-worse",
            "4.1, Figure 1",
            "On the banana DP-SGLD and DP-SGNHT do much worse than both.",
            f"over the worse of DP-HMC and DP penalty, geometric mean over ε: above {MUCH}",
            "comparison",
            _gradient_methods_worse,
        ),
        Claim(
            "banana-worse-at-large-epsilon",
            "4.1, Figure 1",
            "On the banana DP-SGLD and DP-SGNHT fall behind more at the larger ε.",
            "their ratio to DP-HMC, mean over the upper half of the ε grid over that of the lower: above 1",
            "comparison",
            _worse_at_large_epsilon,
        ),
        Claim(
            "gauss-sgld-best",
            "4.1, Figure 1",
            "On the Gaussian DP-SGLD is the best.",
            "DP-SGLD over the best of the paper's three others at each ε, geometric mean: below 1",
            "comparison",
            lambda numbers: _among_four(numbers, "dp-sgld", min, lambda ratio: ratio < 1.0),
        ),
        Claim(
            "gauss-hmc-sgnht-equal",
            "4.1, Figure 1",
            "On the Gaussian DP-HMC and DP-SGNHT are mostly equal.",
            f"DP-HMC over DP-SGNHT, geometric mean over ε: within {EQUAL} of 1 either way",
            "comparison",
            _gauss_hmc_sgnht,
        ),
        Claim(
            "gauss-penalty-worst",
            "4.1, Figure 1",
            "On the Gaussian DP penalty is the worst.",
            "DP penalty over the worst of the paper's three others at each ε, geometric mean: above 1",
            "comparison",
            lambda numbers: _among_four(numbers, "dp-penalty", max, lambda ratio: ratio > 1.0),
        ),
        Claim(
            "banana-tails",
            "4.1, Figure 2",
            "At ε = 15 DP-SGLD and DP-SGNHT have trouble exploring the banana's tails, DP-HMC has less.",
            "covariance error, which the tails dominate, at the largest ε: median over DP-HMC's above "
            f"{EQUAL}",
            "paper-posteriors",
            _tails,
        ),
        Claim(
            "banana-hmc-more-consistent",
            "4.1, Figure 2",
            "At ε = 15 DP-HMC's runs on the banana are more alike than DP penalty's, some of which stay too "
            "long in the tails.",
            "interquartile range over the runs at the largest ε, DP-HMC's over DP penalty's: below 1",
            "paper-posteriors",
            _consistent,
        ),
        Claim(
            "ratios-clipped",
            "4.1",
            "Clip bounds of DP-HMC and DP penalty leave less than 20 % of the log ratios clipped.",
            f"largest median over ε of the fraction clipped: below {GUIDELINE}",
            "",
            lambda numbers: _clipped(
                numbers, "ratio_clip_fraction", [("dp-hmc", "dp-hmc"), ("dp-penalty", "dp-penalty")]
            ),
        ),
        Claim(
            "gradients-clipped",
            "4.1",
            "Clip bounds of DP-SGLD and DP-SGNHT leave less than 20 % of the gradients clipped.",
            f"largest median over ε of the fraction clipped: below {GUIDELINE}",
            "",
            lambda numbers: _clipped(numbers, "gradient_clip_fraction", list(_gradient_labels(numbers))),
        ),
        Claim(
            "clipping-converged",
            "4.2",
            "Without noise, RWMH and HMC converge at the largest clip bound.",
            f"R-hat over all chains, largest component: below {CONVERGED}",
            "paper-clipping",
            lambda numbers: [
                case(name, numbers.median(model, by_bound[max(by_bound)], INF, "rhat_max"), _converged)
                for name, model, by_bound in _clipping(numbers)
            ],
        ),
        Claim(
            "clipping-large-bound",
            "4.2, Figure 3",
            "With a large enough clip bound the MMD hardly changes.",
            f"median MMD at the second largest bound less that at the largest: below {LITTLE} either way",
            "paper-clipping",
            _large_bound,
        ),
        Claim(
            "clipping-guideline",
            "4.2, Figure 3",
            "Clipping has hardly any effect while less than 20 % of the log ratios are clipped.",
            "largest median MMD of the bounds that clip less than 20 %, less that at the largest bound: "
            f"below {LITTLE}",
            "paper-clipping",
            _guideline,
        ),
        Claim(
            "clipping-small-bounds-converge-less",
            "4.2",
            "Not all cells converge, fewer with small clip bounds.",
            f"share with R-hat of {CONVERGED} or more, or none, lower half of the bounds less upper: above 0",
            "paper-clipping",
            _small_bounds,
        ),
        Claim(
            "clipping-chosen-bounds",
            "4.2, Figure 3",
            "At the clip bounds of the comparison clipping has hardly any effect.",
            "median MMD at the next bound of the experiment that is not above the chosen one, less that at "
            f"the largest: below {LITTLE}",
            "paper-clipping",
            _chosen_bounds,
        ),
        Claim(
            "clipping-gap",
            "4.2, Figure 3",
            "On the Gaussian no run has 20 to 60 % of its log ratios clipped; on the banana some have.",
            "share of the runs in the gap: 0 on the Gaussian, above 0 on the banana",
            "paper-clipping",
            _gap,
        ),
        Claim(
            "large-epsilon-needed",
            "5",
            "Unless ε is very large, private chains do not come close to those without privacy.",
            "median MMD of the best private method at the smallest ε over that of the better of RWMH and HMC "
            f"at the largest clip bound: above {MUCH}",
            "comparison",
            _large_epsilon,
        ),
        Claim(
            "hmc-never-worse-than-penalty",
            "6",
            "DP-HMC is consistently better than DP penalty or equal to it.",
            f"DP-HMC over DP penalty, geometric mean over ε: at most {EQUAL}",
            "comparison",
            lambda numbers: [
                one
                for model in ("paper-banana", "paper-gauss")
                for one in _pair(numbers, model, "dp-hmc", ("dp-penalty",), lambda ratio: ratio <= EQUAL)
            ],
        ),
        Claim(
            "sgld-sgnht-inconsistent",
            "6",
            "DP-SGLD and DP-SGNHT do well on one model and badly on the other.",
            f"MMD over DP-HMC's, geometric mean over ε: at most {EQUAL} on one model and more than {MUCH} on "
            "the other; the number is the larger over the smaller",
            "comparison",
            _inconsistent,
        ),
    ]


def _about_equal(ratio: float) -> bool:
    return 1.0 / EQUAL <= ratio <= EQUAL


def _converged(value: float) -> bool:
    return value < CONVERGED


def _model(numbers: Numbers, model_id: str) -> str:
    """The study's label of a model that has a budget; "", of which there are no numbers, for none."""
    study = numbers.study
    return next((label for label in compared_models(study) if study.models[label].model == model_id), "")


def _method(numbers: Numbers, algorithm: str) -> str:
    """The study's main label of an algorithm; "" for none."""
    methods = numbers.study.methods
    return next((m for m in main_methods(numbers.study) if methods[m].algorithm == algorithm), "")


def _versions(numbers: Numbers, algorithm: str) -> Iterator[tuple[str, str]]:
    """(version, label) of an algorithm that the study runs corrected and as published."""
    corrected = _method(numbers, algorithm)
    yield "corrected", corrected
    if corrected and (other := published_variant(numbers.study, corrected)):
        yield "as published", other


def _gradient_labels(numbers: Numbers) -> Iterator[tuple[str, str]]:
    """(name, label) of DP-SGLD and DP-SGNHT in both versions."""
    for algorithm in ("dp-sgld", "dp-sgnht"):
        for version, label in _versions(numbers, algorithm):
            yield f"{algorithm} {version}", label


def _ratio(
    numbers: Numbers, model: str, metric: str, method: str, others: tuple[str, ...], *rest: Any
) -> float | None:
    """`Numbers.ratio` by model id, None where the study lacks a model or method."""
    label = _model(numbers, model)
    if not label or not method or not all(others):
        return None
    return numbers.ratio(label, metric, method, others, *rest)


def _pair(
    numbers: Numbers, model: str, algorithm: str, others: tuple[str, ...], holds: Callable[[float], bool]
) -> list[Case]:
    """A case for each metric: an algorithm over others on a model."""
    labels = tuple(_method(numbers, other) for other in others)
    return [
        case(f"{model} {name}", _ratio(numbers, model, metric, _method(numbers, algorithm), labels), holds)
        for metric, name in METRICS.items()
    ]


def _gradient_methods_worse(numbers: Numbers) -> list[Case]:
    others = (_method(numbers, "dp-hmc"), _method(numbers, "dp-penalty"))
    return [
        case(
            f"{name}, {title}",
            _ratio(numbers, "paper-banana", metric, label, others, max),
            lambda ratio: ratio > MUCH,
        )
        for name, label in _gradient_labels(numbers)
        for metric, title in METRICS.items()
    ]


def _worse_at_large_epsilon(numbers: Numbers) -> list[Case]:
    label = _model(numbers, "paper-banana")
    half = len(numbers.epsilons(label)) // 2 if label else 0
    hmc = (_method(numbers, "dp-hmc"),)
    cases = []
    for name, method in _gradient_labels(numbers):
        for metric, title in METRICS.items():
            low = _ratio(numbers, "paper-banana", metric, method, hmc, min, slice(None, half))
            high = _ratio(numbers, "paper-banana", metric, method, hmc, min, slice(-half, None))
            number = high / low if low and high else None
            cases.append(case(f"{name}, {title}", number, lambda growth: growth > 1.0))
    return cases


def _among_four(
    numbers: Numbers, algorithm: str, which: Callable[..., float], holds: Callable[[float], bool]
) -> list[Case]:
    """One of the paper's four on the Gaussian over the best or worst of the others, in both versions."""
    cases = []
    sgld, sgnht = (dict(_versions(numbers, name)) for name in ("dp-sgld", "dp-sgnht"))
    for version in ("corrected", "as published"):
        if version not in sgld and version not in sgnht:
            continue
        four = {name: _method(numbers, name) for name in ("dp-hmc", "dp-penalty")}
        four["dp-sgld"] = sgld.get(version, sgld["corrected"])
        four["dp-sgnht"] = sgnht.get(version, sgnht["corrected"])
        others = tuple(label for name, label in four.items() if name != algorithm)
        for metric, title in METRICS.items():
            number = _ratio(numbers, "paper-gauss", metric, four[algorithm], others, which)
            cases.append(case(f"{version}, {title}", number, holds))
    return cases


def _gauss_hmc_sgnht(numbers: Numbers) -> list[Case]:
    return [
        case(
            f"DP-SGNHT {version}, {title}",
            _ratio(numbers, "paper-gauss", metric, _method(numbers, "dp-hmc"), (label,)),
            _about_equal,
        )
        for version, label in _versions(numbers, "dp-sgnht")
        for metric, title in METRICS.items()
    ]


def _tails(numbers: Numbers) -> list[Case]:
    hmc = (_method(numbers, "dp-hmc"),)
    last = slice(-1, None)
    return [
        case(
            name,
            _ratio(numbers, "paper-banana", "covariance_error", label, hmc, min, last),
            lambda ratio: ratio > EQUAL,
        )
        for name, label in _gradient_labels(numbers)
    ]


def _consistent(numbers: Numbers) -> list[Case]:
    label = _model(numbers, "paper-banana")
    cases = []
    for metric, title in (METRICS | {"covariance_error": "covariance error"}).items():
        number = None
        if label:
            epsilon = numbers.epsilons(label)[-1]
            hmc, penalty = (
                numbers.spread(label, _method(numbers, name), epsilon, metric)
                for name in ("dp-hmc", "dp-penalty")
            )
            number = hmc / penalty if hmc is not None and penalty else None
        cases.append(case(title, number, lambda ratio: ratio < 1.0))
    return cases


def _clipped(numbers: Numbers, metric: str, methods: list[tuple[str, str]]) -> list[Case]:
    """The largest median fraction over ε, of methods (name, label) on both models."""
    cases = []
    for name, method in methods:
        for model in ("paper-banana", "paper-gauss"):
            label = _model(numbers, model)
            budgets = numbers.epsilons(label) if label else []
            known = [
                value
                for epsilon in budgets
                if (value := numbers.median(label, method, epsilon, metric)) is not None
            ]
            number = max(known) if known else None
            cases.append(case(f"{name}, {model}", number, lambda fraction: fraction < GUIDELINE))
    return cases


def _clipping(numbers: Numbers) -> Iterator[tuple[str, str, dict[float, str]]]:
    """(name, model label, clip bound -> method label) of every algorithm of the clipping experiment."""
    for label in clipping_models(numbers.study):
        for algorithm, by_bound in clip_bounds(numbers.study, label).items():
            yield f"{algorithm}, {numbers.study.models[label].model}", label, by_bound


def _increase(numbers: Numbers, model: str, by_bound: dict[float, str], bound: float) -> float | None:
    """Median MMD at a bound less that at the largest."""
    here = numbers.median(model, by_bound[bound], INF, "mmd")
    largest = numbers.median(model, by_bound[max(by_bound)], INF, "mmd")
    return None if here is None or largest is None else here - largest


def _large_bound(numbers: Numbers) -> list[Case]:
    return [
        case(name, _increase(numbers, model, by_bound, sorted(by_bound)[-2]), lambda x: abs(x) < LITTLE)
        for name, model, by_bound in _clipping(numbers)
        if len(by_bound) > 1
    ]


def _guideline(numbers: Numbers) -> list[Case]:
    cases = []
    for name, model, by_bound in _clipping(numbers):
        increases = []
        for bound in sorted(by_bound)[:-1]:
            fraction = numbers.median(model, by_bound[bound], INF, "ratio_clip_fraction")
            increase = _increase(numbers, model, by_bound, bound)
            if fraction is not None and fraction < GUIDELINE and increase is not None:
                increases.append(increase)
        cases.append(case(name, max(increases, default=None), lambda x: x < LITTLE))
    return cases


def _small_bounds(numbers: Numbers) -> list[Case]:
    cases = []
    for name, model, by_bound in _clipping(numbers):
        late = {}
        for bound, method in by_bound.items():
            if numbers.results.seeds(model, method, INF):
                rhat = numbers.median(model, method, INF, "rhat_max")
                late[bound] = rhat is None or rhat >= CONVERGED  # none: chains that never moved
        half, ranked = len(late) // 2, [late[bound] for bound in sorted(late)]
        known = any(numbers.results.values(model, method, INF, "rhat_max") for method in by_bound.values())
        number = (sum(ranked[:half]) - sum(ranked[-half:])) / half if half and known else None
        cases.append(case(name, number, lambda difference: difference > 0.0))
    return cases


def _chosen_bounds(numbers: Numbers) -> list[Case]:
    keys = {"rwmh": ("dp-penalty", "clip"), "hmc": ("dp-hmc", "clip_l")}
    cases = []
    for label in clipping_models(numbers.study):
        model_id = numbers.study.models[label].model
        compared = _model(numbers, model_id)
        for algorithm, by_bound in clip_bounds(numbers.study, label).items():
            private, key = keys[algorithm]
            method, number, name = _method(numbers, private), None, f"{private}, {model_id}"
            if compared and method:
                values, _ = numbers.study.pinned_hyperparameters(compared, method)
                below = [bound for bound in by_bound if bound <= float(values[key])]
                name += f", bound {values[key]:g}"
                number = _increase(numbers, label, by_bound, max(below)) if below else None
            cases.append(case(name, number, lambda x: x < LITTLE))
    return cases


def _gap(numbers: Numbers) -> list[Case]:
    cases = []
    for label in clipping_models(numbers.study):
        model_id = numbers.study.models[label].model
        fractions = [
            value
            for by_bound in clip_bounds(numbers.study, label).values()
            for method in by_bound.values()
            for value in numbers.results.values(label, method, INF, "ratio_clip_fraction")
        ]
        inside = sum(GAP[0] < value < GAP[1] for value in fractions)
        number = inside / len(fractions) if fractions else None
        empty = model_id == "paper-gauss"
        cases.append(case(model_id, number, lambda share, empty=empty: (share == 0.0) is empty))  # type: ignore[misc]
    return cases


def _large_epsilon(numbers: Numbers) -> list[Case]:
    cases = []
    for label in clipping_models(numbers.study):
        model_id = numbers.study.models[label].model
        compared, number = _model(numbers, model_id), None
        if compared:
            epsilon = numbers.epsilons(compared)[0]
            private = [
                numbers.median(compared, method, epsilon, "mmd") for method in main_methods(numbers.study)
            ]
            free = [
                numbers.median(label, by_bound[max(by_bound)], INF, "mmd")
                for by_bound in clip_bounds(numbers.study, label).values()
            ]
            above, below = ([v for v in values if v is not None] for values in (private, free))
            number = min(above) / min(below) if above and below and min(below) > 0.0 else None
        cases.append(case(model_id, number, lambda ratio: ratio > MUCH))
    return cases


def _inconsistent(numbers: Numbers) -> list[Case]:
    hmc = (_method(numbers, "dp-hmc"),)
    cases = []
    for name, label in _gradient_labels(numbers):
        ratios = [_ratio(numbers, model, "mmd", label, hmc) for model in ("paper-banana", "paper-gauss")]
        known = sorted(ratio for ratio in ratios if ratio is not None)
        if len(known) < 2:
            cases.append(Case(name, None, None))
        else:
            low, high = known
            cases.append(Case(name, high / low, low <= EQUAL and high > MUCH))
    return cases
