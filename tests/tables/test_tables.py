"""Tables of hyperparameters, iterations and run times: their numbers, and how texts look in each format."""

import csv
from pathlib import Path

import pytest
import yaml

from dpmc.cli.main import main
from dpmc.common.errors import DpmcError
from dpmc.reports.tables import write
from dpmc.reports.tables.formats import latex_cell, markdown
from dpmc.studies import load_study

ROOT = Path(__file__).parents[2]
THESIS = load_study(ROOT / "config" / "studies" / "thesis.yaml")


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_hyperparameters_with_noise_multipliers(tmp_path: Path) -> None:
    write("hyperparameters", THESIS, [tmp_path / "h.csv", tmp_path / "h.md", tmp_path / "h.tex"], tmp_path)
    values = {
        (row["model"], row["method"], row["hyperparameter"]): row["value"]
        for row in rows_of(tmp_path / "h.csv")
    }
    # τ√n for a log ratio of all rows (n = 100,000), √τ for one of a batch
    noise = "noise multiplier of"
    assert values["flat-banana-2d", "dp-penalty", f"{noise} log-ratio"] == f"{0.1 * 100_000**0.5:.4g}"
    assert values["flat-banana-2d", "dp-hmc", f"{noise} gradient"] == f"{0.4 * 100_000**0.5:.4g}"
    assert values["flat-banana-2d", "minibatch-penalty", f"{noise} batch log-ratio"] == f"{0.7**0.5:.4g}"
    assert values["circle", "dp-hmc", "clip_l"] == "0.001"
    assert values["clipping-10d", "rwmh-0.5", "clip"] == "0.5"  # an option of the study
    assert values["clipping-10d", "rwmh-0.5", "proposal_sd"] == "2 × 0.015, 8 × 0.002"
    assert {pair[:2] for pair in values} == {cell[:2] for cell in THESIS.cells()}
    text = (tmp_path / "h.md").read_text()
    assert "| Model | tau | clip | proposal_sd | noise multiplier of log-ratio |" in text
    assert "| circle, d = 2 | 4 | 0.002 | 0.2 | 1265 |" in text
    assert r"circle, d = 2 & 4 & 0.002 & 0.2 & 1\,265 \\" in (tmp_path / "h.tex").read_text()


def test_tuned_hyperparameters_take_precedence_over_pinned_ones(tmp_path: Path) -> None:
    path = tmp_path / "thesis/tuning/circle/dp-penalty.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(yaml.safe_dump({"hyperparameters": {"tau": 3, "clip": 0.5, "proposal_sd": 0.25}}))
    write("hyperparameters", THESIS, [tmp_path / "h.csv"], tmp_path)
    rows = [row for row in rows_of(tmp_path / "h.csv") if row["model"] == "circle"]
    values = {row["hyperparameter"]: row["value"] for row in rows if row["method"] == "dp-penalty"}
    assert values.items() >= {"tau": "3", "clip": "0.5", "proposal_sd": "0.25"}.items()
    path.write_text("study: thesis\n")
    with pytest.raises(DpmcError, match=r"dp-penalty.yaml: key 'hyperparameters' is missing"):
        write("hyperparameters", THESIS, [tmp_path / "h.csv"], tmp_path)


def test_noise_that_depends_on_the_budget_has_a_row_for_each(tmp_path: Path) -> None:
    study = load_study(ROOT / "config" / "studies" / "dp-fast-mh.yaml")
    write("hyperparameters", study, [tmp_path / "h.csv"], tmp_path)
    rows = rows_of(tmp_path / "h.csv")
    taus = {
        row["epsilon"]: float(row["value"])
        for row in rows
        if (row["model"], row["method"], row["hyperparameter"]) == ("mixture", "dp-penalty", "tau")
    }
    assert list(taus) == ["0.01", "0.02", "0.05", "0.1", "0.2"]
    assert list(taus.values()) == sorted(set(taus.values()), reverse=True)
    assert {row["epsilon"] for row in rows if row["method"] == "dp-penalty-tuned"} == {"0.05"}
    assert {row["epsilon"] for row in rows if row["method"] == "mh"} == {""}


HEAD = "study,model,method,epsilon,delta,accountant,iterations,budget_iterations,"
HEAD += "tight,zcdp,rdp,replace-pld,wor-pld,barker-pld,fast-mh-pld,epsilon_spent,epsilon_spent_tight\n"


def test_iterations_by_accountant(tmp_path: Path) -> None:
    budgets = tmp_path / "thesis" / "budgets.csv"
    budgets.parent.mkdir()
    budgets.write_text(
        HEAD
        + "thesis,circle,dp-penalty,0.5,1e-6,tight,56,56,56,34,,,,,,0.5,0.5\n"
        + "thesis,circle,dp-penalty,1,1e-6,tight,100,201,201,135,,,,,,0.7,0.7\n"
        + "thesis,clipping-2d,rwmh-1,inf,1e-6,tight,3000,inf,,,,,,,,inf,inf\n"
    )
    write("iterations", THESIS, [tmp_path / "i.csv", tmp_path / "i.md"], tmp_path)
    found = [tuple(row.values()) for row in rows_of(tmp_path / "i.csv")]
    assert found == [
        ("circle", "dp-penalty", "tight", "0.5", "56", "56"),
        ("circle", "dp-penalty", "zcdp", "0.5", "34", ""),
        ("circle", "dp-penalty", "tight", "1", "201", "100"),
        ("circle", "dp-penalty", "zcdp", "1", "135", ""),
        ("clipping-2d", "rwmh-1", "", "inf", "", "3000"),
    ]
    lines = (tmp_path / "i.md").read_text().splitlines()
    assert "| circle, d = 2 | DP penalty | Gaussian, exact* | 56 | 100 of 201 |" in lines
    assert "| circle, d = 2 | DP penalty | zCDP | 34 | 135 |" in lines
    assert any(line.startswith("| flat banana, d = 2, clipping without privacy |") for line in lines)
    assert any(line.endswith(" | – | 3000 |") for line in lines)
    budgets.write_text("model,method\ncircle,dp-penalty\n")
    with pytest.raises(DpmcError, match="budgets.csv: column 'accountant' is missing"):
        write("iterations", THESIS, [tmp_path / "i.csv"], tmp_path)


def measurement(path: Path, wall: float, cpu: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"wall_seconds\tcpu_seconds\tpeak_mib\n{wall}\t{cpu}\t250\n")


def test_run_times_of_jobs(tmp_path: Path) -> None:
    metrics = tmp_path / "results" / "thesis" / "metrics.csv"
    metrics.parent.mkdir(parents=True)
    chains = [("circle", "dp-penalty", "1", 100), ("circle", "dp-penalty", "0.5", 300)]
    chains += [("clipping-2d", "rwmh-1", "inf", 3000), ("clipping-2d", "rwmh-2", "inf", 3000)]
    metrics.write_text(
        "study,model,method,epsilon,seed,metric,value\n"
        + "".join(
            f"thesis,{m},{a},{e},0,iterations,{k}\nthesis,{m},{a},{e},0,mmd,0.1\n" for m, a, e, k in chains
        )
    )
    logs = tmp_path / "logs" / "thesis" / "sampling"
    measurement(logs / "circle/dp-penalty/eps-0.5.tsv", 10.0, 8.0)  # a job for each cell
    measurement(logs / "circle/dp-penalty/eps-1.tsv", 5.0, 4.0)
    measurement(logs / "clipping-2d/rwmh.tsv", 3.0, 2.4)  # a job for all methods without a budget
    (logs / "circle/dp-hmc.tsv").write_text("s\tmax_rss\tcpu_time\n10.0\t250.4\t8.0\n")  # unread
    write("run-times", THESIS, [tmp_path / "t.csv", tmp_path / "t.md"], tmp_path / "results")
    assert [tuple(row.values()) for row in rows_of(tmp_path / "t.csv")] == [
        ("circle", "dp-penalty", "2", "2", "400", "15.0", "12.0", "250"),
        ("clipping-2d", "rwmh", "1", "2", "6000", "3.0", "2.4", "250"),
    ]
    text = (tmp_path / "t.md").read_text()
    assert "| circle, d = 2 | DP penalty | 2 | 400 | 15.0 | 12.0 | 30000 | 250 |" in text
    (logs / "circle/bad.tsv").write_text("a\tb\n1\t2\n")
    with pytest.raises(DpmcError, match=r"bad.tsv: not a measurement"):
        write("run-times", THESIS, [tmp_path / "t.csv"], tmp_path / "results")


def test_the_command_reports_missing_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = str(ROOT / "config" / "studies" / "thesis.yaml")
    command = ["plot", "--study", study, "--results", str(tmp_path), "--output", str(tmp_path / "t.csv")]
    for table, file in (("iterations", "budgets.csv"), ("run-times", "metrics.csv")):
        assert main([*command, "--figure", table]) == 2
        assert f"{tmp_path / 'thesis' / file}: no such file" in capsys.readouterr().err
    assert main([*command, "--figure", "hyperparameters"]) == 0


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("", "--"),
        ("1234567", r"1\,234\,567"),
        ("7e-05", r"$7 \cdot 10^{-5}$"),
        ("1e+06", "$10^{6}$"),
        ("0.25", "0.25"),
        ("a_b & 5 %", r"a\_b \& 5 \%"),
        ("ε = 1", r"$\varepsilon$ = 1"),
    ],
)
def test_texts_in_latex(text: str, latex: str) -> None:
    assert latex_cell(text) == latex


def test_numbers_are_right_aligned_and_bars_are_escaped() -> None:
    lines = list(markdown(("a", "b"), [("x|y", "1"), ("", "")]))
    assert lines == ["| a | b |", "| --- | ---: |", r"| x\|y | 1 |", "| – | – |"]


CLAIMS = """
source: a paper, Section 5
verdicts: {holds: 0, fails: 0, depends: 1, undecided: 1, cannot be decided here: 1}
by_chance: {claims: 1, expected: 0.016}
claims:
- name: better
  section: '5.1'
  claim: Ours is better.
  verdict: depends
  published: holds
  test: 'ratio of medians: below 1'
  figure: figures/thesis/mmd-easy.pdf
  cases:
  - {case: flat, number: 0.5, asked: below 1, holds: true}
  - {case: tempered, number: 1.25, asked: below 1, holds: false}
- name: faster
  section: '5.2'
  claim: It is faster.
  verdict: undecided
  published: –
  test: seconds
  figure: none
  cases:
  - {case: flat, number: null, asked: below 1, holds: null}
- name: starts
  section: '5.3'
  claim: Starts do not matter.
  verdict: cannot be decided here
  published: –
  test: all starts are the same
  figure: none
  cases: []
"""


def test_claims_are_shown_with_verdict_numbers_and_figure(tmp_path) -> None:
    (tmp_path / "results/thesis").mkdir(parents=True)
    (tmp_path / "results/thesis/claims.yaml").write_text(CLAIMS)
    write("claims", THESIS, [tmp_path / "t.csv", tmp_path / "t.md"], tmp_path / "results")
    lines = (tmp_path / "t.md").read_text().splitlines()
    assert (
        "| 5.1 | Ours is better. | depends | holds | 1 of 2 | 0.5 to 1.25 | ratio of medians: below 1 "
        "| mmd-easy |" in lines
    )
    assert "| 5.2 | It is faster. | undecided | – | 0 of 1 | – | seconds | – |" in lines
    verdict = "cannot be decided here"
    assert f"| 5.3 | Starts do not matter. | {verdict} | – | – | – | all starts are the same | – |" in lines
    assert f"Source: a paper, Section 5. Verdicts: 1 depend, 1 undecided, 1 {verdict}." in lines
    assert "0.016 of them would still not hold, by chance" in " ".join(lines)
    cells = (tmp_path / "t.csv").read_text().splitlines()
    assert cells[1] == "better,5.1,depends,holds,flat,0.5,below 1,true"
    assert cells[3] == "faster,5.2,undecided,–,flat,,below 1,"
    assert cells[4] == "starts,5.3,cannot be decided here,–,,,,"
    (tmp_path / "results/thesis/claims.yaml").unlink()
    with pytest.raises(DpmcError, match="claims"):
        write("claims", THESIS, [tmp_path / "t.csv"], tmp_path / "results")
