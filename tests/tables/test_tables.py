"""Tables of a study: their numbers as CSV, and what people read of models and claims."""

from pathlib import Path

import pandas as pd
import pytest
import yaml

from dpmc.cli.main import main
from dpmc.common.errors import DpmcError
from dpmc.reports.tables import LAYOUTS, ROWS_OF_TABLE, markdown, save_table
from dpmc.studies import Study, figures, load_study

ROOT = Path(__file__).parents[2]
THESIS = load_study(ROOT / "config" / "studies" / "thesis.yaml")


def table(name: str, results: Path, study: Study = THESIS) -> pd.DataFrame:
    """Return the table that is written as CSV, all columns text."""
    path = results / f"{name}.csv"
    save_table(name, study, [path], results)
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def values_of(name: str, results: Path, study: Study = THESIS) -> dict[tuple[str, ...], str]:
    """Return the last column by the others."""
    return {tuple(row[:-1]): row[-1] for row in table(name, results, study).to_numpy().tolist()}


TABLE_5_1 = {  # of the thesis: d, n, n₀, a, σ₀²
    "flat-banana-2d": ["2", "100000", "", "20", "1000"],
    "flat-banana-10d": ["10", "200000", "", "20", "1000"],
    "tempered-banana-2d": ["2", "100000", "1000", "20", "1000"],
    "tempered-banana-10d": ["10", "200000", "1000", "20", "1000"],
    "gauss-30d": ["30", "200000", "", "0", "1000"],
    "narrow-banana": ["2", "150000", "", "350", "1000"],
    "correlated-gauss": ["2", "200000", "", "0", "100"],
    "circle": ["2", "77", "", "1e-05", ""],
}


def test_the_models_are_those_of_the_thesis_with_the_study_s_number_of_rows(tmp_path: Path) -> None:
    study = load_study(THESIS.path)
    study.models["circle"] = study.models["circle"].model_copy(update={"n": 77})
    models = table("models", tmp_path, study).set_index("model")
    assert {model: list(models.loc[model, "d":"sigma2_0"]) for model in models.index} == TABLE_5_1
    assert list(models["sampler_sigma2_0"]) == [""] * 6 + ["10000", ""]
    save_table("models", study, [tmp_path / "models.md"])
    lines = (tmp_path / "models.md").read_text().splitlines()
    assert lines[0] == "# Models" and "| Model | d | n | n₀ | a | σ₀² |" in lines
    assert "| circle | 2 | 77 | – | 1e-05 | – |" in lines


def test_each_table_has_a_name_rows_and_texts() -> None:
    assert set(LAYOUTS) == set(ROWS_OF_TABLE) == set(figures.TABLE_NAMES)


def test_another_format_is_refused() -> None:
    for name, path in (("models", "m.pdf"), ("iterations", "i.md")):
        with pytest.raises(DpmcError, match=f"{path}: a file of the table {name} must end in .csv"):
            save_table(name, THESIS, [Path(path)])


def test_hyperparameters_with_noise_multipliers(tmp_path: Path) -> None:
    values = values_of("hyperparameters", tmp_path)
    # τ√n for a log ratio of all rows (n = 100,000), √τ for one of a batch
    expected = {
        ("flat-banana-2d", "dp-penalty", "", "noise multiplier of log-ratio"): f"{0.1 * 100_000**0.5:.4g}",
        ("flat-banana-2d", "dp-hmc", "", "noise multiplier of gradient"): f"{0.4 * 100_000**0.5:.4g}",
        ("flat-banana-2d", "minibatch-penalty", "", "noise multiplier of batch log-ratio"): f"{0.7**0.5:.4g}",
        ("circle", "dp-hmc", "", "clip_l"): "0.001",
        ("clipping-10d", "rwmh-0.5", "", "clip"): "0.5",  # an option of the study
        ("clipping-10d", "rwmh-0.5", "", "proposal_sd"): "2 × 0.015, 8 × 0.002",
    }
    assert values.items() >= expected.items()
    assert {cell[:2] for cell in values} == {cell[:2] for cell in THESIS.cells()}


def test_tuned_hyperparameters_take_precedence_over_pinned_ones(tmp_path: Path) -> None:
    path = tmp_path / "thesis/tuning/circle/dp-penalty.yaml"
    path.parent.mkdir(parents=True)
    tuned = {"tau": 3, "clip": 0.5, "proposal_sd": 0.25}
    path.write_text(yaml.safe_dump({"hyperparameters": tuned}))
    values = values_of("hyperparameters", tmp_path)
    assert {name: float(values["circle", "dp-penalty", "", name]) for name in tuned} == tuned
    path.write_text("study: thesis\n")
    with pytest.raises(DpmcError, match=r"dp-penalty.yaml: key 'hyperparameters' is missing"):
        table("hyperparameters", tmp_path)


def test_noise_that_depends_on_the_budget_has_a_row_for_each(tmp_path: Path) -> None:
    rows = table("hyperparameters", tmp_path, load_study(ROOT / "config/studies/dp-fast-mh.yaml"))
    of_penalty = (rows["model"] == "mixture") & (rows["method"] == "dp-penalty")
    taus = rows[of_penalty & (rows["hyperparameter"] == "tau")]
    assert list(taus["epsilon"]) == ["0.01", "0.02", "0.05", "0.1", "0.2"]
    assert list(taus["value"].astype(float)) == sorted(set(taus["value"].astype(float)), reverse=True)
    assert set(rows["epsilon"][rows["method"] == "dp-penalty-tuned"]) == {"0.05"}
    assert set(rows["epsilon"][rows["method"] == "mh"]) == {""}


BUDGETS = """\
study,model,method,epsilon,delta,iterations,accountant,chosen,allowed,epsilon_spent
thesis,circle,dp-penalty,0.5,1e-3,56,tight,yes,56,0.5
thesis,circle,dp-penalty,0.5,1e-3,56,zcdp,,34,0.7
thesis,circle,dp-penalty,1,1e-3,100,tight,yes,201,0.7
thesis,circle,dp-penalty,1,1e-3,100,one of one's own,,135,0.8
thesis,clipping-2d,rwmh-1,inf,1e-3,3000,tight,yes,inf,inf
"""
#: With a column for each accountant, as earlier versions wrote it.
OLD = "model,method,epsilon,accountant,iterations,budget_iterations,tight\ncircle,dp-penalty,1,tight,1,1,1\n"


def test_iterations_by_accountant(tmp_path: Path) -> None:
    budgets = tmp_path / "thesis" / "budgets.csv"
    budgets.parent.mkdir()
    budgets.write_text(BUDGETS)
    assert table("iterations", tmp_path).to_numpy().tolist() == [
        ["circle", "dp-penalty", "tight", "0.5", "56", "56"],
        ["circle", "dp-penalty", "zcdp", "0.5", "34", ""],
        ["circle", "dp-penalty", "tight", "1", "201", "100"],
        ["circle", "dp-penalty", "one of one's own", "1", "135", ""],
        ["clipping-2d", "rwmh-1", "", "inf", "", "3000"],
    ]
    budgets.write_text(OLD)
    with pytest.raises(DpmcError, match="^.*budgets.csv: column '[a-z]+' is missing; needed: .*$"):
        table("iterations", tmp_path)


def measurement(path: Path, wall: float, cpu: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"wall_seconds\tcpu_seconds\tpeak_mib\n{wall}\t{cpu}\t250\n")


def test_run_times_of_jobs(tmp_path: Path) -> None:
    results, logs = tmp_path / "results", tmp_path / "logs" / "thesis" / "sampling"
    metrics = results / "thesis" / "metrics.csv"
    metrics.parent.mkdir(parents=True)
    chains = [("circle", "dp-penalty", "1", 100), ("circle", "dp-penalty", "0.5", 300)]
    chains += [("clipping-2d", "rwmh-1", "inf", 3000), ("clipping-2d", "rwmh-2", "inf", 3000)]
    rows = "".join(
        f"thesis,{m},{a},{e},0,iterations,{k}\nthesis,{m},{a},{e},0,mmd,0.1\n" for m, a, e, k in chains
    )
    metrics.write_text("study,model,method,epsilon,seed,metric,value\n" + rows)
    measurement(logs / "circle/dp-penalty/eps-0.5.tsv", 10.0, 8.0)  # a job for each cell
    measurement(logs / "circle/dp-penalty/eps-1.tsv", 5.0, 4.0)
    measurement(logs / "clipping-2d/rwmh.tsv", 3.0, 2.4)  # a job for all methods without a budget
    (logs / "circle/dp-hmc.tsv").write_text("s\tmax_rss\tcpu_time\n10.0\t250.4\t8.0\n")  # unread
    assert table("run-times", results).to_numpy().tolist() == [
        ["circle", "dp-penalty", "2", "2", "400", "15.0", "12.0", "250"],
        ["clipping-2d", "rwmh", "1", "2", "6000", "3.0", "2.4", "250"],
    ]
    (logs / "circle/bad.tsv").write_text("a\tb\n1\t2\n")
    with pytest.raises(DpmcError, match=r"bad.tsv: not a measurement"):
        table("run-times", results)
    (logs / "circle/bad.tsv").rename(logs / "stray.tsv")  # in no model's folder
    with pytest.raises(DpmcError, match=r"stray.tsv: not a measurement"):
        table("run-times", results)


def test_the_command_reports_missing_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [
        "plot",
        "--study",
        str(THESIS.path),
        "--results",
        str(tmp_path),
        "--output",
        str(tmp_path / "t.csv"),
    ]
    for name, file in (
        ("iterations", "budgets.csv"),
        ("run-times", "metrics.csv"),
        ("claims", "claims.yaml"),
    ):
        assert main([*command, "--figure", name]) == 2
        assert str(tmp_path / "thesis" / file) in capsys.readouterr().err
    assert main([*command, "--figure", "hyperparameters"]) == 0


def test_numbers_are_right_aligned_and_bars_are_escaped() -> None:
    lines = markdown(pd.DataFrame([("x|y", "1"), ("", "")], columns=["a", "b"])).splitlines()
    assert lines == ["| a | b |", "| --- | ---: |", r"| x\|y | 1 |", "| – | – |"]


CLAIMS = """
source: a paper, Section 5
verdicts:
  {fails: 1, cannot be told at this number of runs: 2, undecided: 1, cannot be decided here: 1}
claims:
- name: better
  section: '5.1'
  claim: Ours is better.
  verdict: fails
  version: ''
  versions: {corrected: cannot be told at this number of runs}
  reproduced: 1 of 2
  published: holds
  luck: 0.016
  test: 'ratio of medians: below 1'
  figure: figures/thesis/mmd-easy.pdf
  cases:
  - {case: 'flat, corrected', version: corrected, number: 0.1, error: 0.1, asked: below 1, holds: true}
  - {case: flat, version: '', number: 0.5, error: 0.12, asked: below 1, holds: true}
  - {case: tempered, version: '', number: 1.25, error: 0.1, asked: below 1, holds: false}
- name: faster
  section: '5.2'
  claim: It is faster.
  verdict: undecided
  version: ''
  versions: {}
  reproduced: –
  published: –
  luck: null
  test: seconds
  figure: none
  cases:
  - {case: flat, version: '', number: null, error: null, asked: below 1, holds: null}
- name: starts
  section: '5.3'
  claim: Starts do not matter.
  verdict: cannot be decided here
  version: ''
  versions: {}
  reproduced: –
  published: –
  luck: null
  test: all starts are the same
  figure: none
  cases: []
"""


def test_claims_are_shown_with_verdict_numbers_and_figure(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis/claims.yaml").write_text(CLAIMS)
    verdict = "cannot be decided here"
    better = ["better", "5.1", "fails", "1 of 2", "holds"]
    assert table("claims", tmp_path).to_numpy().tolist() == [
        [*better, "flat, corrected", "corrected", "0.1", "0.1", "below 1", "true"],
        [*better, "flat", "", "0.5", "0.12", "below 1", "true"],
        [*better, "tempered", "", "1.25", "0.1", "below 1", "false"],
        ["faster", "5.2", "undecided", "–", "–", "flat", "", "", "", "below 1", ""],
        ["starts", "5.3", verdict, "–", "–", "", "", "", "", "", ""],
    ]
    save_table("claims", THESIS, [tmp_path / "claims.md"], tmp_path)
    lines = (tmp_path / "claims.md").read_text().splitlines()
    assert lines[-3:] == [
        "| 5.1 | Ours is better. | fails (corrected: cannot be told) | 1/1/0 "
        "| 0.5 to 1.25 (±0.12) | ratio of medians: below 1 |",
        "| 5.2 | It is faster. | undecided | – | – | seconds |",
        f"| 5.3 | Starts do not matter. | {verdict} | – | – | all starts are the same |",
    ]
    untold = "2 cannot be told at this number of runs"
    summary = f"Source: a paper, Section 5. Verdicts: 1 fail, {untold}, 1 undecided, 1 {verdict}."
    assert lines[2].startswith(f"{summary} If all of 1 were true, 0.016 would fail by luck.")
