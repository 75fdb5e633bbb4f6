"""Examples of README.md and docs/how-to/python.md run as they stand, in order; they print what is shown."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest

import dpmc

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "python.md").read_text()
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    """Blocks of code of the README."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


NUMBER = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")


def assert_alike(printed: str, shown: str) -> None:
    """Compare the words exactly and the numbers by 15 % or 0.02.

    A sum's last bit depends on the processor's vector instructions, so a long chain takes another path there.
    """
    assert NUMBER.sub("#", printed).split() == NUMBER.sub("#", shown).split()
    numbers = [np.array(NUMBER.findall(text), dtype=float) for text in (printed, shown)]
    np.testing.assert_allclose(*numbers, rtol=0.15, atol=0.02)


@pytest.mark.usefixtures("shown")
def test_examples_of_the_readme_print_the_shown_output(capsys: pytest.CaptureFixture[str]) -> None:
    [example], [shown] = blocks("python"), blocks("text")
    assert len([line for line in example.splitlines() if line]) <= 10
    exec(example, names := {})
    printed = capsys.readouterr()
    assert_alike(printed.out, shown)
    [table] = (block for block in blocks("") if "epsilon  spent" in block)
    assert_alike("\n".join(printed.err.splitlines()[-table.count("\n") :]), table)
    model, rows = names["model"], names["rows"]
    exact = model.posterior(rows, 1.0)
    mean = ", ".join(f"{value:.3f}" for value in exact.mean())
    half = 1.645 * np.sqrt(np.diag(exact.covariance()))
    assert f"Without privacy the mean is {mean}, and half of a 90 % interval is {half.mean():.3f}" in README
    table = dpmc.summary(names["tree"])
    wider = 0.5 * (table["upper"] - table["lower"]) / half
    assert (wider > 0.95).all() and (wider < 1.15).all()


@pytest.mark.slow
def test_examples_of_the_page_print_the_shown_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    printed = io.StringIO()
    for language, body in re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        if language == "python":
            with contextlib.redirect_stdout(printed):
                exec(body, names)
        else:
            assert_alike(printed.getvalue(), body)
            printed = io.StringIO()
    assert printed.getvalue() == ""
    model, rows = names["model"], np.loadtxt("people.csv", delimiter=",", skiprows=1)
    posterior = model.posterior(rows[:, [2, 0, 1]], 250 / 5000)  # type: ignore[attr-defined]
    half = names["half"].values  # type: ignore[attr-defined]
    sd = np.sqrt(np.diag(posterior.covariance()))
    assert (np.abs(half.mean(axis=0) - posterior.mean()) < 1.0 * sd).all()
    without = ", ".join(f"{abs(value):.2f}" for value in posterior.mean())
    assert f"(Without privacy: {without}.)" in PAGE
