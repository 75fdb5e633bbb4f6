"""`dpmc.posterior`: draws from answers alone, other priors, several answers about one table, refusals."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray

import dpmc
from dpmc.algorithms.answers import Answered
from dpmc.algorithms.dp_penalty import exact_multiplier
from dpmc.algorithms.noisy_scores import WARM_UP, NoisyScores, Search, posterior_given
from dpmc.algorithms.score_answers import Belief, Round, dispersion_of, information_of, mean_of, posterior_of
from dpmc.base import NoisySum
from dpmc.cli.main import main
from dpmc.models import catalogue, families
from dpmc.models.regression import Regression
from dpmc.privacy.data_ledger import DataLedger
from dpmc.releases import files

LINEAR = dpmc.LinearRegression("y", ["x", "w"], prior_sd=0.5, true_theta=[0.1, -0.3, 0.4])
ROWS = LINEAR.simulate(np.random.default_rng(5), LINEAR.true_theta, 2000)
TABLES: dict[str, dict[float, Any]] = {}


class Coin(families.Bernoulli):
    """A family of one's own, which no other process knows."""


class Own:
    """A Gaussian of one's own with a posterior given a noisy sum."""

    dimension, summary_count = 1, 1

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return -0.5 * (rows[:, 0] - theta[0]) ** 2

    def log_prior(self, theta: np.ndarray) -> float:
        return float(-0.5 * theta @ theta)

    def simulate(self, generator: np.random.Generator, theta: np.ndarray, n: int) -> np.ndarray:
        return theta + generator.standard_normal((n, 1))

    def summaries(self, rows: np.ndarray) -> np.ndarray:
        return rows

    def posterior_given(self, noisy: NoisySum) -> Any:
        from dpmc.models.gaussian import GaussianPosterior

        precision = noisy.rows_worth
        return GaussianPosterior(noisy.total / noisy.n, np.eye(1) / precision)


def scores(model: Any = LINEAR, rows: Any = ROWS, epsilon: float = 2, seed: int = 0, **more: Any) -> Any:
    options = {"iterations": 10, "progress": False, "seed": seed, **more}
    return dpmc.sample(model, rows, "noisy-scores", epsilon=epsilon, **options)


def sums(name: str, epsilon: float = 1, seed: int = 0, **more: Any) -> Any:
    options = {"hyperparameters": {"clip": 9.0}, "iterations": 4, "progress": False, "seed": seed, **more}
    return dpmc.sample(name, "tuning", "noisy-statistics", epsilon=epsilon, **options)


@pytest.fixture(scope="module")
def tree() -> Any:
    return scores()


@pytest.fixture(scope="module")
def other() -> Any:
    return scores(seed=1)


def moments(tree: Any) -> tuple[np.ndarray, np.ndarray]:
    theta = tree.posterior.theta.stack(all=("chain", "draw"))
    return theta.mean("all").values, theta.std("all").values


def main_answer(tree: Any) -> Round:
    return mean_of(
        Round.unstacked({name: tree["answer"][name].values for name in Round._fields})[len(WARM_UP) :]
    )


def test_draws_are_those_of_the_run_without_its_rows_and_more_of_them(tree: Any) -> None:
    drawn = dpmc.posterior(tree, draws=5000)
    again, another = (dpmc.posterior(tree, draws=5000, seed=seed) for seed in (0, 1))
    assert drawn.identical(again) and not np.array_equal(drawn.posterior.theta, another.posterior.theta)
    many = scores(iterations=20_000)
    drawn = dpmc.posterior(many, draws=5000)
    xarray.testing.assert_identical(many["answer"].to_dataset(), drawn["answer"].to_dataset())
    (mean, sd), (theirs, their_sd) = moments(drawn), moments(many)
    assert (np.abs(mean - theirs) < 5 * sd * np.sqrt(2 / 20_000)).all()
    np.testing.assert_allclose(sd, their_sd, rtol=0.04)
    assert drawn.posterior.theta.dims == ("chain", "draw", "parameter")
    assert drawn.posterior.parameter.values.tolist() == ["intercept", "x", "w"]
    assert (
        len(dpmc.summary(drawn)) == 3
        and "y" in LINEAR.predict({"x": [0.0], "w": [1.0]}, drawn)["posterior_predictive"]
    )


def test_one_answer_has_the_likelihood_of_its_noisy_scores(tree: Any) -> None:
    """N(s; M d, S(d)) × prior, by another formula than that of several answers."""
    answer, prior = main_answer(tree), Belief(np.zeros(3), 0.25 * np.eye(3))
    found, d = posterior_of([answer], prior)
    unit, (information, shape, size) = answer.whitening, information_of(answer)
    inverse = np.linalg.inv(unit)
    square = np.outer(d, d) + inverse @ found.covariance @ inverse
    spread = dispersion_of(answer, information) * information + answer.noise_sd**2 * np.eye(3)
    spread += 0.5 * shape * (np.trace(square) * np.eye(3) + square) + size * square
    slope = information @ inverse
    precision = slope.T @ np.linalg.solve(spread, slope) + 4.0 * np.eye(3)
    np.testing.assert_allclose(np.linalg.inv(found.covariance), precision, rtol=1e-6, atol=1e-3)
    linear = slope.T @ np.linalg.solve(spread, answer.scores + slope @ answer.at)
    np.testing.assert_allclose(found.mean, np.linalg.solve(precision, linear), rtol=1e-6, atol=1e-9)
    drawn = dpmc.posterior(tree, draws=20_000)
    mean, sd = moments(drawn)
    np.testing.assert_allclose(mean, found.mean, atol=0.02 * sd.max())
    np.testing.assert_allclose(sd, np.sqrt(np.diag(found.covariance)), rtol=0.02)


def asked(model: Any, rows: np.ndarray, multiplier: float, generator: np.random.Generator) -> Answered:
    """Return an answer of `noisy-scores` about the rows."""
    tables = TABLES.setdefault(repr(model.family), {})  # made once for many sets of rows
    run = Search(NoisyScores(noise_multiplier=multiplier), model, len(rows), tables=tables)
    step = run.questions()
    question: Any = next(step)
    try:
        while True:
            question = step.send(question.total(rows) + generator.standard_normal(question.size))
    except StopIteration:
        return run.answered


@pytest.mark.parametrize("family", [dpmc.LinearRegression, dpmc.LogisticRegression])
def test_two_answers_are_as_good_as_one_with_their_noise_together(family: Callable[..., Any]) -> None:
    """At ε = 0.5 each; the mean of two posteriors would count the sampling of the rows half."""
    model, n, p, sets = family("y", ["x", "w"], prior_sd=0.5), 2000, 3, 30
    noise = exact_multiplier(0.5, 0.1 / n)
    found: dict[str, list[Any]] = {"one": [], "two": [], "whole": []}
    for k in range(sets):
        generator = np.random.default_rng([k, n])
        theta = 0.5 * generator.standard_normal(p)
        rows = model.simulate(generator, theta, n)
        first, second = (asked(model, rows, noise, generator) for _ in range(2))
        whole = asked(model, rows, noise / np.sqrt(2.0), generator)
        for name, answers in {"one": [first], "two": [first, second], "whole": [whole]}.items():
            posterior: Any = posterior_given(answers, n)
            found[name].append((posterior.centre - theta, np.sqrt(np.diag(posterior.spread))))
    errors, sds = (
        {name: np.array([one[i] for one in parts]) for name, parts in found.items()} for i in (0, 1)
    )
    np.testing.assert_allclose(sds["two"].mean(), sds["whole"].mean(), rtol=0.06)
    assert sds["two"].mean() < 0.93 * sds["one"].mean()
    assert (errors["two"] ** 2).mean() < 1.15 * (errors["whole"] ** 2).mean()
    held = np.abs(errors["two"]) < 1.645 * sds["two"]
    # Of 90 intervals 90 % hold; 0.81 and 0.99 are three standard errors away.
    assert 0.81 < held.mean() < 0.99
    np.testing.assert_allclose(np.sqrt((errors["two"] ** 2).mean()), sds["two"].mean(), rtol=0.2)


def test_answers_commute_and_one_that_knows_little_adds_nothing() -> None:
    generator = np.random.default_rng(3)
    good, vague = (asked(LINEAR, ROWS, noise, generator) for noise in (1.0, 1e4))
    alone, both, reverse = (
        posterior_given(answers, 2000) for answers in ([good], [good, vague], [vague, good])
    )
    for one in (both, reverse):
        np.testing.assert_allclose(one.mean(), alone.mean(), atol=1e-3 * alone.covariance().max() ** 0.5)
        np.testing.assert_allclose(one.covariance(), alone.covariance(), rtol=1e-3, atol=1e-8)


def test_the_residual_sd_of_two_answers_has_their_noise_but_the_rows_once() -> None:
    model = dpmc.LinearRegression("y", ["x"], sd=None, prior_sd=[0.5, 0.5, 2.0])
    rows = model.simulate(np.random.default_rng(1), np.array([0.1, 0.2, -0.5]), 2000)
    generator = np.random.default_rng(2)
    answers = [asked(model, rows, 4.0, generator) for _ in range(2)]
    each = [posterior_given([one], 2000) for one in answers]
    both, (first, second) = posterior_given(answers, 2000), [one.covariance()[2, 2] for one in each]
    without_noise = 1.0 / (2 * 2000)  # of ln sd of normal residuals; some are clipped, which costs
    assert without_noise < both.covariance()[2, 2] < min(first, second)
    means = sorted(one.mean()[2] for one in each)
    assert means[0] < both.mean()[2] < means[1]
    assert len(posterior_given(answers, 2000, np.ones(3)).mean()) == 3


def test_another_prior_is_that_of_a_model_with_it(tree: Any) -> None:
    wide = dpmc.LinearRegression("y", ["x", "w"], prior_sd=[3.0, 2.0, 1.0])
    drawn = dpmc.posterior(tree, prior_sd=[3.0, 2.0, 1.0], draws=50)
    expected: Any = posterior_of([main_answer(tree)], Belief(np.zeros(3), np.diag(wide.prior_sd**2)))[0]
    assert drawn.attrs["prior_sd"].tolist() == [3.0, 2.0, 1.0]
    mean, sd = moments(dpmc.posterior(tree, prior_sd=[3.0, 2.0, 1.0], draws=20_000))
    np.testing.assert_allclose(mean, expected.mean, atol=0.02 * sd.max())
    narrow = moments(dpmc.posterior(tree, prior_sd=1e-4))
    np.testing.assert_allclose(narrow[1], 1e-4, rtol=0.1)
    assert dpmc.posterior(tree, prior_sd=0.5).posterior.identical(dpmc.posterior(tree).posterior)


def test_a_process_that_has_only_the_file_draws_also_with_a_family_of_ones_own(tmp_path: Path) -> None:
    model = Regression("y", ["x"], family=Coin(), prior_sd=1.0)
    rows = model.simulate(np.random.default_rng(1), np.array([0.5, -0.5]), 2000)
    tree = scores(model, rows)
    tree.to_netcdf(tmp_path / "own.nc")
    code = "import dpmc; tree = dpmc.posterior('own.nc', draws=50); print(tree.posterior.theta.values.sum())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert float(done.stdout) == dpmc.posterior(tree, draws=50).posterior.theta.values.sum()


def test_the_file_has_the_prior_and_a_release_is_held_against_it(tmp_path: Path) -> None:
    ledger = DataLedger.create(tmp_path / "people.ledger", 10.0, 1e-3)
    release = dpmc.release(
        LINEAR,
        ROWS,
        "noisy-scores",
        epsilon=2,
        ledger=ledger.path,
        iterations=10,
        output=tmp_path / "release.nc",
        progress=False,
    )
    assert files.check(release) == [] and main(["check-release", str(tmp_path / "release.nc")]) == 0
    drawn = dpmc.posterior(tmp_path / "release.nc", draws=50)
    assert drawn.posterior.identical(dpmc.posterior(release, draws=50).posterior)
    assert json.loads(drawn.attrs["answers"])[0]["mode"] == "release"
    np.testing.assert_array_equal(drawn.attrs["prior_sd"], LINEAR.prior_sd)
    changed = release.copy()
    changed["answer"]["prior_sd"][1] = 0.6
    assert files.check(changed) == ["/answer: prior_sd: is not what is asked after these answers"]
    elsewhere = DataLedger.create(tmp_path / "others.ledger", 10.0, 1e-3)
    options: dict[str, Any] = {"epsilon": 2, "iterations": 10, "progress": False}
    foreign = dpmc.release(LINEAR, ROWS, "noisy-scores", ledger=elsewhere.path, **options)
    with pytest.raises(dpmc.DpmcError, match="ledger of the rows must be the same"):
        dpmc.posterior([release, foreign])


def test_sums_are_averaged_by_precision_and_have_the_catalogues_posterior() -> None:
    first, second = sums("correlated-gauss", 0.5), sums("correlated-gauss", 1.0, seed=1)
    sd = [float(tree["answer"]["sum_noise_sd"]) for tree in (first, second)]
    weights = np.array(sd) ** -2.0
    mean = np.average([tree["answer"]["sum"].values for tree in (first, second)], axis=0, weights=weights)
    model: Any = catalogue.definition("correlated-gauss").model
    n = int(first.attrs["n"])
    for trees, noisy in (
        ([first, second], NoisySum(mean, n, weights.sum() ** -0.5, 1.0)),
        ([first], NoisySum(first["answer"]["sum"].values, n, sd[0], 1.0)),
    ):
        expected = model.posterior_given(noisy)
        found, spread = moments(dpmc.posterior(trees, draws=10_000))
        np.testing.assert_allclose(found, expected.mean(), atol=0.03 * spread.max())
        np.testing.assert_allclose(spread, np.sqrt(np.diag(expected.covariance())), rtol=0.03)
    narrow = dpmc.posterior(first, prior_sd=1e-5)
    np.testing.assert_allclose(moments(narrow)[1], 1e-5, rtol=0.1)
    with pytest.raises(dpmc.DpmcError, match="correlated-gauss has one for all parameters"):
        dpmc.posterior(first, prior_sd=[1.0, 2.0])


@pytest.mark.parametrize("name", ["circle", "narrow-banana"])
def test_a_model_without_a_normal_prior_refuses_another_one(name: str) -> None:
    tree = sums(name)
    assert dpmc.posterior(tree, draws=20, chains=2).posterior.theta.shape == (2, 20, 2)
    with pytest.raises(dpmc.DpmcError, match=f"prior_sd: {name} has no normal prior around 0"):
        dpmc.posterior(tree, prior_sd=1.0)


def test_a_model_of_ones_own_that_the_file_lacks_is_refused() -> None:
    rows = Own().simulate(np.random.default_rng(1), np.zeros(1), 500)
    tree = dpmc.sample(
        Own(),
        rows,
        "noisy-statistics",
        epsilon=1,
        hyperparameters={"clip": 3.0},
        iterations=4,
        progress=False,
    )
    with pytest.raises(dpmc.DpmcError, match="is a model of your own, which is not in the file"):
        dpmc.posterior(tree)


def replaced(tree: Any, name: str, values: Any) -> Any:
    other = tree.copy(deep=True)
    other["answer"] = other["answer"].to_dataset().assign({name: (tree["answer"][name].dims, values)})
    return other


def test_results_without_an_answer_or_of_other_rows_are_refused(tree: Any, other: Any) -> None:
    setting = {"tau": 1, "clip": 3, "proposal_sd": 0.1}
    chain = dpmc.sample(LINEAR, ROWS, epsilon=1, hyperparameters=setting, iterations=8, progress=False)
    wider = dpmc.LinearRegression("y", {"x": (0, 2), "w": (0, 1)}, prior_sd=0.5)
    another_prior = dpmc.LinearRegression("y", ["x", "w"], prior_sd=1.0)
    for results, rule in (
        ([], "needs runs"),
        (chain, "'dp-penalty': the result has no answer"),
        ([tree, tree], "given twice"),
        ([tree, scores(thin=2)], "given twice"),
        ([tree, scores(rows=ROWS[:1999])], "n must be the same"),
        ([tree, scores(wider)], "description must be the same"),
        ([tree, scores(another_prior, seed=1)], "different priors: give prior_sd"),
        (dpmc.posterior(tree, draws=8).drop_nodes("answer"), "has no answer"),
        (3, "'int' must be a chain file"),
        (replaced(tree, "whitening", 0.0 * tree["answer"]["whitening"].values), "may be damaged"),
        (replaced(tree, "prior_sd", [1.0, 0.0, 1.0]), "may be damaged"),
        (replaced(tree, "scores", np.nan * tree["answer"]["scores"].values), "may be damaged"),
    ):
        with pytest.raises(dpmc.DpmcError, match=rule) as caught:
            dpmc.posterior(results)  # type: ignore[arg-type]
        assert "\n" not in str(caught.value)
    both = dpmc.posterior([tree, scores(another_prior, seed=1)], prior_sd=1.0, draws=8)
    assert {"answer_0", "answer_1"} < set(both.children)
    with pytest.raises(dpmc.DpmcError, match="summary: description must be the same"):
        dpmc.summary(tree, scores(wider))


@pytest.mark.parametrize("wrong", [0, -1.0, [1.0, 2.0], float("nan"), "a", [[1], [1, 2]], None])
def test_a_wrong_prior_sd_or_number_is_refused(tree: Any, wrong: Any) -> None:
    changed = {"draws": 0} if wrong is None else {"prior_sd": wrong}
    with pytest.raises(dpmc.DpmcError, match=f"posterior: {next(iter(changed))}: "):
        dpmc.posterior(tree, **changed)


def test_a_posterior_spends_what_its_answers_spent_together(tree: Any, other: Any) -> None:
    both = dpmc.posterior([tree, other], draws=8)
    assert dpmc.joint_epsilon(both) == dpmc.joint_epsilon(tree, other)
    assert dpmc.joint_epsilon(both, delta=1e-4) == dpmc.joint_epsilon(tree, other, delta=1e-4)
    assert dpmc.joint_epsilon(dpmc.posterior(tree, draws=8)) == dpmc.joint_epsilon(tree)
    assert [one["epsilon"] for one in json.loads(both.attrs["answers"])] == ["2", "2"]


def test_the_command_writes_what_the_function_returns(
    tree: Any, other: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [str(tmp_path / name) for name in ("first.nc", "second.nc")]
    for name, result in zip(names, (tree, other), strict=True):
        result.to_netcdf(name)
    output = tmp_path / "posterior.nc"
    command = ["posterior", *names, "--prior-sd", "1", "--draws", "40", "--output", str(output)]
    assert main(command) == 0
    printed = capsys.readouterr()
    assert "intercept" in printed.out and printed.err == ""
    expected = dpmc.posterior([tree, other], prior_sd=1, draws=40)
    np.testing.assert_array_equal(xarray.load_datatree(output).posterior.theta, expected.posterior.theta)
    assert main(["summary", str(output)]) == 0 and capsys.readouterr().out == printed.out
    assert main(command) == 2 and "--force overwrites it" in capsys.readouterr().err
    assert main(["posterior", names[0], "--output", names[0], "--force"]) == 2
    assert main(["posterior", names[0], names[1], "--prior-sd", "1", "2"]) == 2
    assert "prior_sd: shape (2,) must be (3,)" in capsys.readouterr().err
