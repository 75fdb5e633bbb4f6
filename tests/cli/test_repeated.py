"""`dpmc repeated`: runs on many data sets, as cells of the study; resumption, refusals, figures and table."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

from dpmc.cli import repeated
from dpmc.cli.main import main
from dpmc.common.errors import DpmcError
from dpmc.metrics.cell import second_half_of
from dpmc.metrics.coverage import errors, share_interval
from dpmc.reports import plots, tables
from dpmc.reports.plots.repeated import applies, coverage
from dpmc.sampling.loop import sample
from dpmc.studies import load_study, make_cell, pinned_hyperparameters, problem_of, study_of
from dpmc.studies.figures import declared_figure

STUDY = {
    "title": "repeated runs",
    "delta": "0.1/n",
    "seeds": 1,
    "tuning": {"mode": "none"},
    "models": {
        "few": {"model": "gauss-30d", "data": "fresh-0", "n": 2000, "epsilons": [1], "iterations": 40}
    },
    "methods": {"noisy-statistics": {}, "dp-penalty": {}},
    "repeated": {
        "few": {"epsilons": [1, 4], "sets": 4},
        "more": {
            "model": "few",
            "n": 3000,
            "start": 10,
            "epsilons": [2],
            "sets": 2,
            "methods": ["dp-penalty"],
        },
        "tempered": {
            "model": "tempered-banana-2d",
            "n": 2000,
            "epsilons": [2],
            "sets": 1,
            "methods": ["noisy-statistics"],
        },
    },
    "figures": ["coverage", "width", "repeated"],
}
VALUES = {"few": {"tau": 0.5, "clip": 3.0, "proposal_sd": 0.01}}
SETTINGS = {
    "dp-penalty": VALUES,
    "noisy-statistics": {"few": {"clip": 7.0}, "tempered-banana-2d": {"clip": 6}},
}


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study in the current folder, with a clock that stands still."""
    (tmp_path / "hyperparameters").mkdir()
    (tmp_path / "hyperparameters/many.yaml").write_text(json.dumps(SETTINGS))
    (tmp_path / "many.yaml").write_text(yaml.safe_dump(STUDY))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(repeated, "time", SimpleNamespace(process_time=lambda: 0.0))
    return Path("many.yaml")


def repeat(label: str, method: str = "noisy-statistics", output: str = "new.csv") -> int:
    given = ("--study", "many.yaml", "--model", label, "--method", method, "--output", output)
    return main(("repeated", *given, "--force", "--quiet"))


def found(table, file: str = "new.csv") -> dict[tuple[str, str, str], float]:
    return {(row["epsilon"], row["seed"], row["metric"]): float(row["value"]) for row in table(file)}


@pytest.mark.parametrize("label", ["few", "more"])
def test_a_run_is_that_of_a_cell_of_the_study(study: Path, table, label: str) -> None:
    assert repeat(label, "dp-penalty") == 0
    of, sets = load_study(study).repeated[label]
    values, (epsilon, *_) = found(table), of.epsilons(label, "dp-penalty")
    problem = problem_of(of, label, dataset=f"fresh-{sets - 1}", exact=True)
    given = pinned_hyperparameters(of, label, "dp-penalty")
    (chains,) = sample(make_cell(of, problem, "dp-penalty", epsilon, given), [0])
    sds = np.sqrt(np.diag(problem.exact.posterior_covariance))
    own = errors(second_half_of(chains).reshape(-1, 30), problem, sds)
    for name, value in own.items():
        assert values[epsilon, str(sets - 1), name] == value
    assert values[epsilon, "0", "iterations"] == 40
    if label == "few":  # the first data set is that of the study's own cell
        data = problem_of(load_study(study), label)
        assert (problem_of(of, label, dataset="fresh-0").rows == data.rows).all()
    else:
        near = problem_of(load_study(study).repeated["few"].study, "few", dataset="fresh-0")
        assert problem.n == 3000
        assert (
            5.0
            < np.abs(problem.starts - problem.true_theta).mean()
            / np.abs(near.starts - near.true_theta).mean()
        )


def test_a_method_of_another_study_runs_with_that_studys_hyperparameters(study: Path, table) -> None:
    methods = {**STUDY["methods"], "dp-penalty": {"from_study": "many"}}
    runs = {"few": {"epsilons": [4], "sets": 1, "methods": ["dp-penalty"]}}
    Path("takes.yaml").write_text(yaml.safe_dump({**STUDY, "methods": methods, "repeated": runs}))
    Path("hyperparameters/takes.yaml").write_text(
        json.dumps({"noisy-statistics": SETTINGS["noisy-statistics"]})
    )
    given = ("--model", "few", "--method", "dp-penalty")
    assert main(("repeated", "--study", "takes.yaml", *given, "--output", "taken.csv")) == 0
    assert repeat("few", "dp-penalty") == 0
    whole, taken = found(table), found(table, "taken.csv")
    assert taken and {key: value for key, value in whole.items() if key[:2] == ("4", "0")} == taken
    # They are this study's runs, which its figures show.
    Path("results/takes").mkdir(parents=True)
    Path("taken.csv").rename("results/takes/repeated.csv")
    loaded = load_study("takes.yaml")
    figure = coverage(plots.ToDraw(declared_figure(study, "coverage"), None, loaded, Path("results")))
    places = [list(line.get_ydata()) for line in figure.axes[0].lines]
    assert [taken["4", "0", "coverage_90"]] in places
    assert tables.make_table("repeated", loaded, Path("results"))["method"].tolist() == ["dp-penalty"]


def test_a_killed_job_goes_on_and_is_equal_to_one_that_was_not(study: Path, monkeypatch) -> None:
    assert repeat("few", output="whole.csv") == 0
    calls: list[str] = []

    def killed(cell, seeds):
        calls.append(cell.epsilon)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return sample(cell, seeds)

    monkeypatch.setattr(repeated, "sample", killed)
    assert repeat("few") == 130 and not Path("new.csv").exists()
    kept = Path(".new.jsonl")
    whole = kept.read_text()
    kept.write_text(whole + whole.splitlines()[0][:70])  # a line that was cut off
    assert repeat("few") == 0 and len(calls) == 4 + 5
    assert Path("new.csv").read_bytes() == Path("whole.csv").read_bytes()
    assert kept.read_text().startswith(whole) and kept.read_text().count("\n") == 8


def test_more_data_sets_make_those_alone_and_other_settings_all(study: Path, monkeypatch) -> None:
    assert repeat("few") == 0
    before, calls = Path("new.csv").read_text(), []
    monkeypatch.setattr(repeated, "sample", lambda cell, seeds: calls.append(1) or sample(cell, seeds))
    document = yaml.safe_load(study.read_text())
    document["repeated"]["few"]["sets"] = 5
    study.write_text(yaml.safe_dump(document))
    assert repeat("few") == 0 and len(calls) == 2
    assert Path("new.csv").read_text().startswith(before)
    other = {**SETTINGS, "noisy-statistics": {**SETTINGS["noisy-statistics"], "few": {"clip": 9.0}}}
    Path("hyperparameters/many.yaml").write_text(json.dumps(other))
    assert repeat("few") == 0 and len(calls) == 2 + 10
    assert not Path("new.csv").read_text().startswith(before)


def test_exact_draws_hold_as_often_as_they_say_and_a_tempered_model_has_errors_alone(
    study: Path, table
) -> None:
    assert repeat("few", "baseline") == 0
    values = found(table)
    for level, share in ((50, 0.5), (90, 0.9)):  # of 120 intervals
        mean = np.mean([value for (_, _, name), value in values.items() if name == f"coverage_{level}"])
        assert abs(mean - share) < 4.0 * np.sqrt(share * (1.0 - share) / 120.0)
    assert repeat("tempered", output="t.csv") == 0
    assert {name for _, _, name in found(table, "t.csv")} == {
        "error",
        "error_true",
        "iterations",
        "cpu_seconds",
    }


def test_a_point_estimate_has_no_intervals(study: Path, table, monkeypatch) -> None:
    from dpmc.algorithms.noisy_statistics import NoisyStatistics

    monkeypatch.setattr(NoisyStatistics, "is_point", True, raising=False)
    assert repeat("few") == 0
    assert {name for _, _, name in found(table)} == {"error", "error_true", "iterations", "cpu_seconds"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sets": 0}, "repeated: few: sets: 0: "),
        ({"sets": None}, "repeated: few: sets: None: must be a whole number"),
        (
            {"epsilon": [1]},
            "repeated: few: epsilon: unknown key; known: model, n, start, settings_of, epsilons",
        ),
        ({"model": "gaus"}, "repeated: few: model: 'gaus' is unknown; known: few, flat-banana-2d, "),
        (
            {"methods": ["dp-hmc"]},
            "repeated: few: methods: 'dp-hmc' is unknown; known: noisy-statistics, dp-",
        ),
        ({"start": 0}, "repeated: few: start: 0 must be `perturbed`, `true` in quotes, or a number above 0"),
        (
            {"start": True},
            "repeated: few: start: True must be `perturbed`, `true` in quotes, or a number above 0",
        ),
        ({"start": "far"}, "repeated: few: start: 'far' must be `perturbed`"),
    ],
)
def test_wrong_keys_are_refused_in_one_line(study: Path, changes: dict, message: str) -> None:
    few = {"epsilons": [1], "sets": 2, **changes}
    with pytest.raises(DpmcError) as refusal:
        study_of({**STUDY, "repeated": {"few": few}}, study)
    assert message in str(refusal.value) and "\n" not in str(refusal.value)


def test_settings_that_a_search_finds_are_refused(study: Path) -> None:
    models = {"few": {**STUDY["models"]["few"], "tuning_epsilon": 1}}
    with pytest.raises(DpmcError, match=r"repeated: few: not with tuning: \{mode: search\}"):
        study_of(
            {
                **STUDY,
                "models": models,
                "tuning": {"mode": "search"},
                "repeated": {"few": {"epsilons": [1], "sets": 2}},
            },
            study,
        )


@pytest.mark.parametrize(
    ("label", "method", "words"),
    [
        ("fw", "dp-penalty", "repeated: 'fw' is unknown; known: few, more"),
        ("few", "hmc", "'hmc' is unknown; known:"),
    ],
)
def test_labels_are_checked(study: Path, refused, label: str, method: str, words: str) -> None:
    assert words in refused(
        *("repeated", "--study", "many.yaml", "--model", label, "--method", method, "--output", "n.csv")
    )


def test_figure_and_table_have_the_numbers(study: Path) -> None:
    head, shares = "study,model,method,epsilon,seed,metric,value\n", {"1": [1.0, 0.5], "4": [1.0, 0.9, 0.8]}
    rows = [
        f"many,few,dp-penalty,{epsilon},{seed},{name},{value}\n"
        for epsilon, values in shares.items()
        for seed, value in enumerate(values)
        for name in ("coverage_90", "error_true")
    ]
    Path("results/many").mkdir(parents=True)
    Path("results/many/repeated.csv").write_text(head + "".join(rows))
    loaded, results = load_study(study), Path("results")
    figure = coverage(plots.ToDraw(declared_figure(study, "coverage"), None, loaded, results))
    (line,) = [one for one in figure.axes[0].lines if len(one.get_xdata()) == 2 and 4.0 in one.get_xdata()]
    assert line.get_ydata() == pytest.approx([0.75, 0.9]) and len(figure.axes) == 3
    chosen = declared_figure(study, "coverage").model_copy(
        update={"models": ["few"], "methods": ["dp-penalty"]}
    )
    (alone,) = coverage(plots.ToDraw(chosen, None, loaded, results)).axes
    assert [list(line.get_ydata()) for line in alone.lines if len(line.get_xdata()) == 2][-1] == [0.75, 0.9]
    assert not applies(loaded, chosen.model_copy(update={"models": ["another"]}))
    (bars,) = figure.axes[0].collections
    low, high = bars.get_segments()[1][:, 1]
    assert (low, high) == pytest.approx(share_interval(shares["4"])[1:])
    made = tables.make_table("repeated", loaded, results).set_index("epsilon")
    assert made.loc["4", ["sets", "usable", "coverage_90", "error_true"]].tolist() == ["3", "3", "0.9", "0.9"]
    assert made.loc["1", ["coverage_90", "error_true", "width_90"]].tolist() == ["0.75", "0.75", ""]


def test_a_file_of_data_keeps_start_points_far_away_when_it_needs_more(study: Path) -> None:
    document = yaml.safe_load(study.read_text())
    document["models"]["few"]["start"] = 3
    study.write_text(yaml.safe_dump(document))
    assert main(("data", "--study", "many.yaml", "--model", "few", "--output", "few.nc", "--quiet")) == 0
    far = load_study(study)
    more = problem_of(far, "few", Path("few.nc"), starts=40)
    assert (
        len(more.starts) == 40 and (more.starts[:20] == problem_of(far, "few", Path("few.nc")).starts).all()
    )
    near = problem_of(study_of(STUDY, study), "few", starts=40)
    np.testing.assert_allclose(
        more.starts - more.true_theta, 3.0 * (near.starts - near.true_theta), rtol=1e-12
    )
