"""What the DP-Fast MH paper says about its experiments, and the numbers that decide it.

What it says of DP-Fast MH is asked of each variant: as published, as coded by its authors, and corrected, the
only one whose ε is true. ε is per iteration, as in the paper: a claim that holds here says nothing of equal
total budgets. Words that leave room have one meaning: comparable is a ratio within `EQUAL` of 1 either way,
much a ratio above `MUCH`, drastic one below `DRASTIC`, converged a divergence of at most `EQUAL` times that
of MH without privacy after as many iterations. Divergences and accuracies are medians over the runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from dpmc.claims import Case, Claim, Numbers, case
from dpmc.figures import fast
from dpmc.figures.fast_logistic import k_sweeps

SOURCE = (
    "DP-Fast MH: Private, Fast, and Accurate Metropolis-Hastings for Large-Scale Bayesian Inference (2023)"
)
EQUAL = 1.25
MUCH = 1.5
DRASTIC = 0.2
WEIGHT = 0.22  # distance of means: a tenth of the distance of the two modes, a weight wrong by a tenth
ALMOST_ALL = 0.8  # of the rows
FEW = 0.2  # of the rows
BETTER = 0.01  # accuracy
PREVIOUS = ("dp-penalty", "dp-barker")
KL, ROWS, ACCURACY = "symmetric_kl", "rows_per_iteration", "test_accuracy"
EARLY, LATER = "symmetric_kl_at_4000", "symmetric_kl_at_10000"
BY_ROWS = ("symmetric_kl_by_50000000_rows", "symmetric_kl_by_1000000_rows")


def claims() -> list[Claim]:
    """Return the claims, in the order of the paper; each asks the study for the labels that it speaks of."""
    return [
        Claim(
            "mixture-better-than-previous",
            "6.1, Figure 1(a)",
            "DP-Fast MH and its full-batch version estimate the mixture better than the penalty algorithm "
            "and Barker's at every ε.",
            "largest ratio over ε of its divergence to the smaller of the two others': below 1",
            "mixture",
            lambda numbers: _over_previous(numbers, KL, fast.FAST, lambda ratio: ratio < 1.0),
        ),
        Claim(
            "full-batch-better-than-penalty",
            "6.1, Figure 1(a)",
            "Full-batch DP-Fast MH converges much better than the penalty algorithm, by privacy for free.",
            f"penalty's divergence over its, geometric mean over ε: above {MUCH}",
            "mixture",
            lambda numbers: [
                case(name, _mean_ratio(numbers, model, "dp-penalty", label, KL), lambda ratio: ratio > MUCH)
                for name, model, label in _fast(numbers, "mixture", (fast.FULL_BATCH,))
            ],
        ),
        Claim(
            "minibatch-like-full-batch",
            "6.1, Figure 1(a)",
            "With minibatches DP-Fast MH does about as well as with all rows.",
            f"divergence with minibatches over that with all rows, geometric mean over ε: at most {EQUAL}",
            "mixture",
            lambda numbers: _minibatch_over_full(numbers, KL, lambda ratio: ratio <= EQUAL),
        ),
        Claim(
            "minibatch-cheap",
            "6.1, Figure 1(b)",
            "Minibatches drastically reduce the cost of a step.",
            f"rows per iteration with minibatches over all rows, geometric mean over ε: below {DRASTIC}",
            "mixture",
            lambda numbers: _minibatch_over_full(numbers, ROWS, lambda ratio: ratio < DRASTIC),
        ),
        Claim(
            "barker-does-not-converge",
            "6.1, Figure 1(a)",
            "The Barker method does not converge to the posterior.",
            f"smallest ratio over ε of its divergence to that of MH without privacy: above {MUCH}",
            "mixture",
            lambda numbers: [
                case(
                    model,
                    min(_ratios_to_mh(numbers, model, "dp-barker", KL), default=None),
                    lambda ratio: ratio > MUCH,
                )
                for model in _models(numbers, "mixture")
            ],
        ),
        Claim(
            "less-privacy-converges-better",
            "6.1, Figure 1(a)",
            "DP-Fast MH converges more slowly the smaller ε is.",
            "divergence at the smallest ε over that at the largest: above 1",
            "mixture",
            lambda numbers: _ends(numbers, KL),
        ),
        Claim(
            "smaller-batches-than-barker",
            "6.1, Figure 1(b)",
            "DP-Fast MH has much smaller batches than the Barker method.",
            f"smallest ratio over ε of Barker's rows per iteration to its: above {MUCH}",
            "mixture",
            lambda numbers: [
                case(
                    name,
                    min(_ratios(numbers, model, "dp-barker", label, ROWS), default=None),
                    lambda ratio: ratio > MUCH,
                )
                for name, model, label in _fast(numbers, "mixture", (fast.MINIBATCH,))
            ],
        ),
        Claim(
            "more-privacy-larger-batches",
            "6.1, Figure 1(b)",
            "DP-Fast MH needs larger batches the smaller ε is.",
            "rows per iteration at the smallest ε over those at the largest: above 1",
            "mixture",
            lambda numbers: _ends(numbers, ROWS, (fast.MINIBATCH,)),
        ),
        Claim(
            "converges-in-4000",
            "6.1, Figure 1(c)",
            "At ε = 0.05 DP-Fast MH has converged after 4,000 iterations.",
            f"divergence over that of MH without privacy, both after 4,000 iterations: at most {EQUAL}",
            "mixture",
            lambda numbers: _at_shown(numbers, EARLY, (fast.MINIBATCH,), lambda ratio: ratio <= EQUAL),
        ),
        Claim(
            "penalty-slower",
            "6.1, Figure 1(c)",
            "At ε = 0.05 the penalty algorithm has not fully converged after 10,000 iterations.",
            f"divergence over that of MH without privacy, both after 10,000 iterations: above {EQUAL}",
            "mixture",
            lambda numbers: _at_shown(numbers, LATER, ("dp-penalty",), lambda ratio: ratio > EQUAL),
        ),
        Claim(
            "barker-far-away",
            "6.1, Figure 1(c)",
            "At ε = 0.05 the Barker method is still far away after 10,000 iterations.",
            f"divergence over that of MH without privacy, both after 10,000 iterations: above {MUCH}",
            "mixture",
            lambda numbers: _at_shown(numbers, LATER, ("dp-barker",), lambda ratio: ratio > MUCH),
        ),
        Claim(
            "full-batch-faster-than-penalty",
            "6.1, Figure 1(c)",
            "At ε = 0.05 full-batch DP-Fast MH converges faster than the penalty algorithm.",
            "its divergence over penalty's, both after 4,000 iterations: below 1",
            "mixture",
            lambda numbers: [
                case(name, _one_ratio(numbers, model, label, "dp-penalty", EARLY), lambda ratio: ratio < 1.0)
                for name, model, label in _fast(numbers, "mixture", (fast.FULL_BATCH,))
            ],
        ),
        Claim(
            "density-of-fast",
            "6.1, Figure 2",
            "At ε = 0.05 the densities of DP-Fast MH and its full-batch version are very close to the "
            "posterior.",
            f"divergence over that of MH without privacy, both after 10,000 iterations: at most {EQUAL}",
            "density",
            lambda numbers: _at_shown(numbers, LATER, fast.FAST, lambda ratio: ratio <= EQUAL),
        ),
        Claim(
            "penalty-weights",
            "6.1, Figure 2",
            "At ε = 0.05 the penalty algorithm gets the relative weights of the two modes wrong.",
            f"distance of the mean of a chain's second half from the exact one: above {WEIGHT}, a tenth of "
            "the distance of the modes",
            "density",
            lambda numbers: [
                case(
                    model,
                    numbers.median(model, "dp-penalty", fast.SHOWN_EPSILON, "mean_error"),
                    lambda distance: distance > WEIGHT,
                )
                for model in _models(numbers, "mixture")
            ],
        ),
        Claim(
            "logistic-better-than-previous",
            "6.1, Figure 3(a)",
            "On logistic regression both versions of DP-Fast MH have significantly higher test accuracy than "
            "the penalty algorithm and Barker's at every ε.",
            f"smallest gain of accuracy over ε over the better of the two others: above {BETTER}",
            "logistic",
            _accuracy_gain,
        ),
        Claim(
            "logistic-barker-takes-all",
            "6.1, Figure 3(b)",
            "At small ε the Barker method has to use almost the entire data set.",
            f"share of the rows looked at in an iteration at its smallest ε: above {ALMOST_ALL}",
            "logistic",
            lambda numbers: [
                case(
                    model,
                    _share(numbers, model, _label(numbers, model, "dp-barker"), min),
                    lambda share: share > ALMOST_ALL,
                )
                for model in _models(numbers, "logistic")
            ],
        ),
        Claim(
            "logistic-fast-takes-few",
            "6.1, Figure 3(b)",
            "DP-Fast MH needs less than 20 % of the rows.",
            f"largest share over ε of the rows looked at in an iteration: below {FEW}",
            "logistic",
            lambda numbers: [
                case(name, _share(numbers, model, label, None), lambda share: share < FEW)
                for name, model, label in _fast(numbers, "logistic", (fast.MINIBATCH,))
            ],
        ),
        Claim(
            "k-accuracy",
            "6.2, Figure 3(c)",
            "Test accuracy increases when K decreases.",
            "accuracy at the smallest K less that at the largest: above 0",
            "logistic",
            lambda numbers: _k_ends(numbers, ACCURACY, lambda small, large: small - large, 0.0),
        ),
        Claim(
            "k-rows",
            "6.2, Figure 3(c)",
            "The batch size increases when K decreases.",
            "rows per iteration at the smallest K over those at the largest: above 1",
            "logistic",
            lambda numbers: _k_ends(numbers, ROWS, lambda small, large: small / large, 1.0),
        ),
        Claim(
            "faster-by-rows",
            "E.1.1, Figure 4",
            "By rows used, DP-Fast MH and its full-batch version converge significantly faster than the "
            "penalty algorithm and Barker's.",
            "at ε = 0.05, the smaller of the two others' divergences over its, when 50 million rows have "
            f"been looked at (a million, where a chain of its looks at fewer): above {EQUAL}",
            "mixture",
            _by_rows,
        ),
    ]


# -- which labels -------------------------------------------------------------------------------------------


def _models(numbers: Numbers, start: str) -> list[str]:
    return [label for label, spec in numbers.study.models.items() if spec.model.startswith(start)]


def _fast(numbers: Numbers, start: str, algorithms: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """(name, model, label) of every variant of these algorithms, with its main settings."""
    for model in _models(numbers, start):
        for label in fast.main_labels(numbers.study, model):
            if numbers.study.methods[label].algorithm in algorithms:
                yield f"{model}, {label}", model, label


def _label(numbers: Numbers, model: str, algorithm: str) -> str:
    """The label with main settings that runs an algorithm on a model; the algorithm's id where none does."""
    found = (
        label
        for label in fast.main_labels(numbers.study, model)
        if numbers.study.methods[label].algorithm == algorithm
    )
    return next(found, algorithm)


def _previous(numbers: Numbers, model: str, epsilon: str, metric: str) -> list[float]:
    """The medians of those of the previous methods that run at an ε."""
    values = [numbers.median(model, _label(numbers, model, p), epsilon, metric) for p in PREVIOUS]
    return [value for value in values if value is not None]


def _without_privacy(numbers: Numbers, model: str) -> str | None:
    """The label of MH without privacy."""
    for label in fast.main_labels(numbers.study, model):
        spec = numbers.study.methods[label]
        if spec.algorithm == "rwmh" and spec.options.get("acceptance", "metropolis") == "metropolis":
            return label
    return None


# -- numbers ---------------------------------------------------------------------------------------------


def _epsilons(numbers: Numbers, model: str, *labels: str) -> list[str]:
    """The ε at which all of these labels run, in ascending order."""
    known = [numbers.study.methods.keys() & {label} for label in labels]
    if not all(known):
        return []
    sets = [set(numbers.study.epsilons(model, label)) for label in labels]
    return sorted(set.intersection(*sets) - {fast.INF}, key=float)


def _ratios(numbers: Numbers, model: str, above: str, below: str, metric: str) -> list[float]:
    """Ratios of medians at every ε that both labels have."""
    pairs = [
        (numbers.median(model, above, epsilon, metric), numbers.median(model, below, epsilon, metric))
        for epsilon in _epsilons(numbers, model, above, below)
    ]
    return [one / other for one, other in pairs if one is not None and other]


def _mean_ratio(numbers: Numbers, model: str, above: str, below: str, metric: str) -> float | None:
    """The geometric mean over ε of a ratio of medians."""
    logs = [math.log(ratio) for ratio in _ratios(numbers, model, above, below, metric) if ratio > 0.0]
    return math.exp(sum(logs) / len(logs)) if logs else None


def _one_ratio(numbers: Numbers, model: str, above: str, below: str, metric: str) -> float | None:
    """The ratio of medians at the ε that is shown."""
    one = numbers.median(model, above, fast.SHOWN_EPSILON, metric)
    other = numbers.median(model, below, fast.SHOWN_EPSILON, metric)
    return one / other if one is not None and other else None


def _ratios_to_mh(numbers: Numbers, model: str, label: str, metric: str) -> list[float]:
    """Ratios of a label's medians, at every ε, to that of MH without privacy."""
    mh = _without_privacy(numbers, model)
    floor = numbers.median(model, mh, fast.INF, metric) if mh else None
    values = [numbers.median(model, label, e, metric) for e in _epsilons(numbers, model, label)]
    return [value / floor for value in values if value is not None and floor]


def _over_previous(
    numbers: Numbers, metric: str, algorithms: Sequence[str], holds: Callable[[float], bool]
) -> list[Case]:
    """Cases of the largest ratio over ε to the smallest of the previous methods' that run there."""
    cases = []
    for name, model, label in _fast(numbers, "mixture", algorithms):
        ratios = []
        for epsilon in _epsilons(numbers, model, label):
            mine = numbers.median(model, label, epsilon, metric)
            known = _previous(numbers, model, epsilon, metric)
            if mine is not None and known and min(known) > 0.0:
                ratios.append(mine / min(known))
        cases.append(case(name, max(ratios, default=None), holds))
    return cases


def _minibatch_over_full(numbers: Numbers, metric: str, holds: Callable[[float], bool]) -> list[Case]:
    """Cases of the ratio of minibatches to all rows, variant by variant."""
    full = {
        (model, fast.variant(numbers.study, label)): label
        for _, model, label in _fast(numbers, "mixture", (fast.FULL_BATCH,))
    }
    cases = []
    for name, model, label in _fast(numbers, "mixture", (fast.MINIBATCH,)):
        partner = full.get((model, fast.variant(numbers.study, label)))
        ratio = _mean_ratio(numbers, model, label, partner, metric) if partner else None
        cases.append(case(name, ratio, holds))
    return cases


def _ends(numbers: Numbers, metric: str, algorithms: Sequence[str] = fast.FAST) -> list[Case]:
    """Cases of the ratio of the medians at the smallest and at the largest ε."""
    cases = []
    for name, model, label in _fast(numbers, "mixture", algorithms):
        epsilons = _epsilons(numbers, model, label)
        first, last = (numbers.median(model, label, epsilons[i], metric) for i in (0, -1))
        ratio = first / last if first is not None and last else None
        cases.append(case(name, ratio, lambda ratio: ratio > 1.0))
    return cases


def _at_shown(
    numbers: Numbers, metric: str, algorithms: Sequence[str], holds: Callable[[float], bool]
) -> list[Case]:
    """Cases of the ratio, at the ε that is shown, to MH without privacy."""
    cases = []
    for name, model, label in _fast(numbers, "mixture", algorithms):
        mh = _without_privacy(numbers, model)
        mine = numbers.median(model, label, fast.SHOWN_EPSILON, metric)
        floor = numbers.median(model, mh, fast.INF, metric) if mh else None
        cases.append(case(name, mine / floor if mine is not None and floor else None, holds))
    return cases


def _by_rows(numbers: Numbers) -> list[Case]:
    cases = []
    for name, model, label in _fast(numbers, "mixture", fast.FAST):
        reached = [m for m in BY_ROWS if numbers.median(model, label, fast.SHOWN_EPSILON, m) is not None]
        ratios = [_one_ratio(numbers, model, other, label, reached[0]) for other in PREVIOUS if reached]
        known = [ratio for ratio in ratios if ratio is not None]
        cases.append(case(name, min(known, default=None), lambda ratio: ratio > EQUAL))
    return cases


def _accuracy_gain(numbers: Numbers) -> list[Case]:
    cases = []
    for name, model, label in _fast(numbers, "logistic", fast.FAST):
        gains = []
        for epsilon in _epsilons(numbers, model, label):
            mine = numbers.median(model, label, epsilon, ACCURACY)
            known = _previous(numbers, model, epsilon, ACCURACY)
            if mine is not None and known:
                gains.append(mine - max(known))
        cases.append(case(name, min(gains, default=None), lambda gain: gain > BETTER))
    return cases


def _share(numbers: Numbers, model: str, label: str, which: Callable[..., str] | None) -> float | None:
    """The share of the rows looked at in an iteration: at one ε, or the largest over all of them (None)."""
    epsilons = _epsilons(numbers, model, label)
    if which is not None and epsilons:
        epsilons = [which(epsilons, key=float)]
    rows = [numbers.median(model, label, epsilon, ROWS) for epsilon in epsilons]
    known = [value for value in rows if value is not None]
    full = numbers.median(model, "dp-penalty", fast.SHOWN_EPSILON, ROWS)  # which reads all rows
    return max(known) / full if known and full else None


def _k_ends(
    numbers: Numbers, metric: str, compared: Callable[[float, float], float], limit: float
) -> list[Case]:
    """Cases that compare the smallest K with the largest."""
    cases = []
    for model in _models(numbers, "logistic"):
        for kind, labels in k_sweeps(numbers.study, model).items():
            small, large = (
                numbers.median(model, labels[size], fast.SHOWN_EPSILON, metric)
                for size in (min(labels), max(labels))
            )
            number = compared(small, large) if small is not None and large else None
            cases.append(case(f"{model}, {kind}", number, lambda value: value > limit))
    return cases
