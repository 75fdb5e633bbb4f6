"""Numbers that pages quote: a false one is found, in whatever form it is written; no results, no verdict."""

from pathlib import Path

import pytest
import quotes

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if DOCS / "_build" not in page.parents)
METRICS = """study,model,method,epsilon,seed,metric,value
made,banana,walk,1,0,mmd,0.5
made,banana,walk,1,1,mmd,0.52
made,banana,walk,1,2,mmd,0.9
made,banana,walk,2,0,mmd,0.304
made,banana,hmc,1,0,clipped,0.671
made,banana,hmc,2,0,clipped,0.755
made,circle,hmc,1,0,clipped,-12345.6
"""
BUDGETS = """study,model,method,epsilon,delta,iterations,accountant,chosen,allowed,epsilon_spent
made,banana,walk,1,1e-6,30,tight,yes,60,0.5
made,banana,walk,1,1e-6,30,zcdp,,40,0.7
"""
CLAIMS = """study: made
verdicts: {holds: 3, fails: 1}
claims:
- name: better
  cases:
  - {case: 'banana, walk', number: 1.25, holds: true}
  - {case: 'banana, hmc', number: null, holds: null}
"""
RIGHT = [
    "an MMD of 0.52 and 0.30<!--= metrics mmd banana walk 1,2 -->",
    "at ε = 1, 2 it is 0.52,\n  0.304<!--= metrics mmd banana walk\n 1,2 -->",
    "67 to 76 %<!--= metrics clipped banana * * over=range -->",
    "−12,346<!--= metrics clipped circle hmc 1 -->",
    "in all but two<!--= metrics clipped banana,circle hmc * least=0.1 over=count --> cells",
    "3 hold, 1 fails<!--= verdicts holds,fails -->",
    "0.152<!--= metrics mmd banana walk 2 column=value/epsilon -->",
    "30, 60 and 0.70<!--= budgets banana walk 1 column=iterations,allowed_tight,epsilon_spent_zcdp -->",
    "1.5<!--= budgets * * * column=allowed_tight/allowed_zcdp -->",
    "1.71 times<!--= metrics mmd banana walk 1,2 over=ratio -->",
    "| a | b |\n| 1 | 2 |\n<!--= text table.md -->",
]
FALSE = "an MMD of 0.52 and 0.31<!--= metrics mmd banana walk 1,2 -->"
WRONG = {
    FALSE: "says 0.31, made has 0.304",
    "67 to 77 %<!--= metrics clipped banana * * over=range -->": "says 77, made has 75.5",
    "five<!--= metrics clipped banana hmc * over=count -->": "says five, made has 2",
    "none<!--= metrics mmd banana walk 1 -->": "asks for 1 numbers; fewer stand before it",
    "1<!--= metrics mmd banana -->": "asks for 4 words: metric, model, method, epsilon",
    "1<!--= numbers mmd -->": "numbers: no such table",
    "1<!--= metrics mmd banana walk 1 column=what -->": "no column what",
    "| a | b |\n| 1 | 3 |\n<!--= text table.md -->": "the lines before are not those of",
}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results" / "made"
    folder.mkdir(parents=True)
    (folder / "metrics.csv").write_text(METRICS)
    (folder / "budgets.csv").write_text(BUDGETS)
    (folder / "claims.yaml").write_text(CLAIMS)
    (folder / "table.md").write_text("| a | b |\n| 1 | 2 |\n")
    return folder.parent


def page_of(tmp_path: Path, text: str) -> Path:
    page = tmp_path / "page.md"
    page.write_text(f"# A page\n\n<!-- results of made -->\n{text}\n", encoding="utf-8")
    return page


def test_a_correct_quote_passes_and_a_wrong_one_is_found(tmp_path: Path, results: Path) -> None:
    for text in RIGHT:
        count, findings = quotes.check_page(page_of(tmp_path, text), results)
        assert count > 0 and findings == [], text
    for text, words in WRONG.items():
        _, findings = quotes.check_page(page_of(tmp_path, text), results)
        assert {finding.skipped for finding in findings} == {False} and words in str(findings[0])
        assert findings[0].line == 4 + text.partition("<!--=")[0].count("\n")


def test_quotes_without_results_are_skipped_and_without_a_study_reported(tmp_path: Path) -> None:
    (finding,) = quotes.check_page(page_of(tmp_path, RIGHT[0]), tmp_path)[1]
    assert finding.skipped and "metrics.csv is not there" in finding.words
    page = tmp_path / "page.md"
    page.write_text("1<!--= verdicts holds -->")
    assert "no comment before it says of which study" in str(quotes.check_page(page, tmp_path)[1][0])


def test_quotes_name_existing_studies_tables_and_columns(tmp_path: Path) -> None:
    """Without results: every comment of every page names a study, a table and its columns."""
    checked = {page: quotes.check_page(page, tmp_path)[1] for page in PAGES}
    assert [str(f) for findings in checked.values() for f in findings if not f.skipped] == []
    assert len(checked[DOCS / "results/index.md"]) > 30
