"""Questions: no pair of rows moves a sum by more than is declared, in floats and in a release's integers."""

from typing import Any

import numpy as np
import pytest

import dpmc
from dpmc.evaluators.lattice import LatticeEvaluator
from dpmc.models.gaussian import Gaussian
from dpmc.models.score_tables import Scores
from dpmc.privacy import questions
from dpmc.privacy.events import GaussianQuery
from dpmc.privacy.lattice import lattice_of
from dpmc.privacy.mechanisms import PrivateData
from models.test_score_tables import FAMILIES, table_of

THETA = np.array([0.3, -0.8, 0.5])
WHITENING = np.array([[1.1, 0.2, -0.1], [0.2, 0.7, 0.3], [-0.1, 0.3, 1.6]])
SENSITIVITY = 0.4


class Lying:
    """A table that says anything of a row: its bound is too small, its slope negative, its h not clipped."""

    clip = 1.5

    def at(self, eta: np.ndarray, y: np.ndarray) -> Scores:
        waves = [np.sin(1e4 * eta + k * y) for k in (1.0, 2.0, 3.0)]
        h, slope, clipped = (np.sign(wave) * 10.0 ** (8.0 * np.abs(wave) - 2.0) for wave in waves)
        h, clipped = np.where(np.abs(waves[1]) < 0.05, np.nan, h), np.where(waves[1] > 0.9, 0.0, clipped)
        return Scores(h, np.full(len(y), 0.9), slope, np.full(len(y), 1e-3), clipped, np.ones(len(y), bool))

    def root(self, eta: np.ndarray) -> np.ndarray:
        return 10.0 ** (9.0 * np.sin(1e4 * eta))


#: By name: the family, and whether χ is asked.
CASES = {**{name: (name, False) for name in FAMILIES}, "normal, sd unknown": ("normal", True)}
CASES |= {"lying": ("normal", False), "lying, sd unknown": ("normal", True)}
WEIGHTED = {"normal, weights": ("normal", True), "logistic, weights": ("logistic", False)}
WEIGHTED["lying, weights"] = "normal", True
CASES |= WEIGHTED


def score_question(case: str, **changes: Any) -> Any:
    """Return a question of three coefficients about the named case."""
    name, asks_spread = CASES[case]
    more: Any = {"offset": "o", "weights": {"w": 7.0}} if case in WEIGHTED else {}
    model = dpmc.Regression("y", ["a", "b"], family=FAMILIES[name][0], **more)
    table = Lying() if case.startswith("lying") else table_of(name, 1.5)
    given = {"bound": 1.7, "largest_information": 2.1, "sensitivity": SENSITIVITY, "share": 0.2, **changes}
    return questions.ScoreQuestion(model, table, THETA, WHITENING, asks_spread=asks_spread, **given)


def rows_of(case: str) -> np.ndarray:
    """Return strange rows of a case; those with weights have others than they may have, and offsets."""
    rows = strange_rows()
    if case not in WEIGHTED:
        return rows
    generator, n = np.random.default_rng(6), len(rows)
    weights = generator.choice([7.5, 1e9, np.inf, 3.0, 1e-9, 0.0, -1.0, -np.inf, np.nan], n)
    offsets = generator.choice([1.0, -40.0, np.inf, np.nan], n)
    usual = generator.random((2, n)) < 0.7
    return np.column_stack([rows, np.where(usual[0], 0.0, offsets), np.where(usual[1], 7.0, weights)])


def strange_rows() -> np.ndarray:
    """Return rows (y, a, b) that are as far as rows can be, the usual ones, and what is no number."""
    generator, values = (
        np.random.default_rng(3),
        [0.0, 1.0, 7.0, -3.0, 0.5, 1e9, -1e9, 1e300, np.inf, -np.inf, np.nan],
    )
    usual = np.column_stack([generator.poisson(1.0, 200), generator.standard_normal((200, 2))])
    directions = generator.standard_normal((40, 2)) * 10.0 ** generator.uniform(-3.0, 2.0, (40, 1))
    some = [[y, *x] for y in values[:7] for x in directions]
    far = [
        [y, a, b] for y in values for a in (0.0, -0.5, 1e3, 1e200, -np.inf, np.nan) for b in (0.0, 1.0, 1e160)
    ]
    along = [[y, k, 1.6 * k] for y in values for k in (-1e4, 30.0, 1e4)]  # η does not change
    return np.concatenate([usual, some, far, along])


def farthest(numbers: np.ndarray) -> float:
    """Return the largest distance of two rows' numbers."""
    return float(max(np.linalg.norm(numbers - one, axis=1).max() for one in numbers))


def pair_faults(case: str) -> list[str]:
    """Return whether two rows differ by more than the sensitivity, or none nearly does, and wrong numbers."""
    question = score_question(case)
    with np.errstate(all="ignore"):
        numbers = question.of_rows(rows_of(case))
    found = [] if np.isfinite(numbers).all() and numbers.shape[1] == question.size else ["not numbers"]
    if not 0.85 * SENSITIVITY < (most := farthest(numbers)) <= SENSITIVITY:
        found.append(f"two rows differ by {most}")
    most = question.bound * question.model.design.largest_weight
    if not np.linalg.norm(numbers[:, :3] * question.noise_sd, axis=1).max() <= most:
        found.append("s is longer than its bound")
    return found


def but_slow(*cases: str) -> list[Any]:
    """Return cases; a table of the gamma family takes long."""
    return [pytest.param(case, marks=[pytest.mark.slow] if case == "gamma" else []) for case in cases]


@pytest.mark.parametrize("case", but_slow(*CASES))
def test_no_two_rows_differ_by_more_than_the_sensitivity(case: str) -> None:
    """And some nearly do, so that no noise is wasted: with opposite scores M is the same."""
    assert pair_faults(case) == []


def other_pair_faults() -> list[str]:
    """As `pair_faults`, of sums of summaries and of lengths; these are those of their definition."""
    model = Gaussian(np.array([[2.0, -0.9], [-0.9, 1.0]]), 4.0, 4.0)
    plain = questions.SumQuestion(model, np.array([0.5, 2.0]), 0.7, SENSITIVITY)
    table, lying = table_of("logistic", 3.0), Lying()
    regression = dpmc.LogisticRegression("y", ["a", "b"])
    about: Any = regression, table, THETA, WHITENING, SENSITIVITY
    length = questions.LengthQuestion(*about)
    other = questions.LengthQuestion(regression, lying, *about[2:])
    found, rows = [], strange_rows()
    for question, own in ((plain, rows[:, 1:]), (length, rows), (other, rows)):
        with np.errstate(all="ignore"):
            numbers = question.of_rows(own)
            if not np.allclose(question.total(own), numbers.sum(axis=0), rtol=1e-9):
                found.append("total")
        if not 0.999 * SENSITIVITY < (most := farthest(numbers)) <= SENSITIVITY * (1.0 + 1e-12):
            found.append(f"two rows differ by {most}")
    z = np.column_stack([np.ones(200), rows[:200, 1:]])
    logs = np.log(np.linalg.norm(z @ WHITENING, axis=1) / np.sqrt(3.0) * table.root(z @ THETA))
    if not np.allclose(length.of_rows(rows[:200])[:, 0] * length.noise_sd, np.clip(logs, -3.0, 3.0)):
        found.append("lengths")
    clipped = np.clip(model.summaries(np.array([[0.6, 0.3]])) - plain.centre, -1e9, 1e9)
    clipped *= min(1.0, 0.7 / np.linalg.norm(clipped))
    if not np.allclose(plain.of_rows(np.array([[0.6, 0.3]])) * plain.noise_sd, clipped):
        found.append("summaries")
    return found


def test_no_two_rows_differ_by_more_than_the_sensitivity_of_other_questions() -> None:
    assert other_pair_faults() == []


class Recorded:
    """Noise of no size that records its sd in units."""

    runs = 1

    def begin(self, _: int) -> None:
        pass

    def shared(self, total: np.ndarray, unit: float, sd: float) -> np.ndarray:
        self.total, self.units = total, sd / unit
        return unit * total


@pytest.mark.parametrize(
    "case",
    but_slow("normal, sd unknown", "logistic", "student", "gamma", "lying, sd unknown", "lying, weights"),
)
def test_integers_of_two_rows_differ_by_at_most_the_sensitivity_and_rounding(case: str) -> None:
    """In units: sensitivity times the scale S and 2√N; the noise is larger in proportion."""
    question, rows = score_question(case), rows_of(case)
    with np.errstate(all="ignore"):
        numbers = question.of_rows(rows)
    ends = [int(np.argmax(np.linalg.norm(numbers - one, axis=1))) for one in numbers[:40]]
    chosen = sorted({*ends, *range(200, len(rows), 30)})
    lattice, noise, found = lattice_of([GaussianQuery("scores", 1.0 / SENSITIVITY)], 1), Recorded(), []
    for j in chosen:
        evaluator: Any = LatticeEvaluator(question.model, rows[j : j + 1], lattice)
        private = PrivateData(evaluator, 1.0, noise, np.zeros((1, 1, 0), np.uint64))  # type: ignore[arg-type]
        answer = private.answers([question])[0]
        (total, unit, _), scale = evaluator.answer_sums([question]), noise.units
        assert total.dtype == np.int64 and unit * total[0] == pytest.approx(answer)
        found.append(total[0])
    most = SENSITIVITY / unit + 2.0 * np.sqrt(question.size)
    assert 0.8 * most < farthest(np.array(found).astype(float)) <= most <= SENSITIVITY * scale


def worst(share: float, with_spread: bool) -> float:
    """Return the largest squared distance of two rows over the squared sensitivity, on a grid (B = 1)."""
    noise = 4.0 / (1.0 - share), 1.0 / share  # squared: σ_s, σ_h at H = 1, for a sensitivity of 1
    s, t, c = (part.ravel() for part in np.meshgrid(*[np.linspace(0.0, 1.0, n) for n in (41, 41, 401)]))
    f = (s**2 + t**2 + 2.0 * c * s * t) / noise[0] + (s**2 - t**2) ** 2 / (2.0 * noise[0])
    if with_spread:  # χ/c² is any number from S² to 1
        farther = np.maximum(1.0 - t**2, 1.0 - s**2)
        f += farther**2 / (2.0 * noise[0])
    return float((f + np.maximum(1.0, 2.0 - 2.0 * c**2) / noise[1]).max())


def noise_faults(share: float) -> list[str]:
    """Return whose noise is not that of the lemma."""
    question = score_question("normal, sd unknown", share=share)
    wanted = {
        "noise_sd": 2.0 * 1.7 / (SENSITIVITY * np.sqrt(1.0 - share)),
        "information_sd": 2.1 / (SENSITIVITY * np.sqrt(share)),
        "squares_sd": np.sqrt(2.0) * 1.7 * question.noise_sd,
        "spread_sd": np.sqrt(2.0) * 1.5**2 * question.noise_sd / 1.7,
    }
    return [name for name, sd in wanted.items() if getattr(question, name) != pytest.approx(sd)]


@pytest.mark.parametrize("with_spread", [False, True])
def test_the_lemma_holds_on_a_grid_and_fails_beyond_its_condition(with_spread: bool) -> None:
    assert questions.LARGEST_SHARE == 0.298
    for share in (0.01, 0.1, 0.2, 0.298):
        assert worst(share, with_spread) <= 1.0 + 1e-12 and noise_faults(share) == []
    for share in (0.30, 0.35, 0.5):
        assert worst(share, with_spread) > 1.0 + 1e-6
        with pytest.raises(AssertionError):
            score_question("normal", share=share)


def usual_rows(case: str) -> np.ndarray:
    """Return rows of the model, and two with outcomes that a family may not have."""
    generator = np.random.default_rng(4)
    x = generator.standard_normal((300, 2))
    eta = np.column_stack([np.ones(300), x]) @ THETA
    y = FAMILIES[CASES[case][0]][0].draw(generator, eta)
    if CASES[case][1]:  # S is clamped to B√χ/c: residuals of one sd are not
        y = eta + 0.7 * np.sign(y - eta)
    y[:2] = -0.5 if "normal" not in case and case != "student" else y[:2]
    return np.column_stack([y, x])


def differences(case: str) -> list[str]:
    """Return where an answer differs from the definition of its sums, row by row."""
    rows = usual_rows(case)
    question = score_question(case, bound=0.6, largest_information=0.5)
    s, m, q, chi = np.zeros(3), np.zeros((3, 3)), 0.0, 0.0
    for y, *x in rows:
        z = np.array([1.0, *x])
        row = Scores(*(part[0] for part in question.table.at(np.array([z @ THETA]), np.array([y]))))
        if not row.known:
            continue
        tz = WHITENING @ z
        length = np.linalg.norm(tz)
        reach = row.root * row.bound * length, row.root * row.slope * length**2
        w = min(1.0, 0.6 / reach[0], 0.5 / reach[1])
        part = w * row.root * row.h * tz
        s, m = s + part, m + w * row.root * row.slope * np.outer(tz, tz)
        q, chi = q + part @ part, chi + row.clipped**2
    found = []
    for how, numbers in (("total", question.total(rows)), ("of_rows", question.of_rows(rows).sum(axis=0))):
        answer = question.answer(numbers)
        pairs = zip(answer._fields, answer, (s, m, q, chi * question.asks_spread), strict=True)
        found += [
            f"{how}: {name}: {a}, {b}" for name, a, b in pairs if not np.allclose(a, b, rtol=1e-7, atol=1e-7)
        ]
        if not np.allclose(question.numbers(answer), numbers, rtol=1e-12):
            found.append(f"{how}: numbers")
    return found


QUICK = ("normal, sd unknown", "logistic", "student")


@pytest.mark.parametrize("case", but_slow(*QUICK, "poisson", "gamma"))
def test_an_answer_is_the_sums_of_its_definition_for_rows_in_any_order(case: str) -> None:
    assert differences(case) == []
    question, rows = score_question(case), usual_rows(case)
    there, again = (question.total(part) for part in (rows, rows[np.random.default_rng(5).permutation(300)]))
    np.testing.assert_allclose(there, again, rtol=1e-9, atol=1e-9)
    with np.errstate(all="ignore"):
        total, numbers = question.total(strange_rows()), question.of_rows(strange_rows())
    np.testing.assert_allclose(total, numbers.sum(axis=0), rtol=1e-9, atol=1e-9)
