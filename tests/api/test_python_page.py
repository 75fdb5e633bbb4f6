"""Examples of README.md and docs/how-to/python.md run as they stand, in order; they print what is shown."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest

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


def test_examples_of_the_readme_print_the_shown_output(capsys: pytest.CaptureFixture[str]) -> None:
    [example], [shown] = blocks("python"), blocks("text")
    assert len([line for line in example.splitlines() if line]) <= 10
    exec(example, names := {})
    assert_alike(capsys.readouterr().out, shown)
    table, model = names["fit"].to_frame(), names["model"]
    truth = model.own_units()[0] @ np.array([-0.5, 0.4, 0.8]) + model.own_units()[1]
    assert (np.abs(table["estimate"] - truth) < 3.0 * table["sd"]).all()
    assert "intervals are 5 % wider" in README.replace("\n", " ")
    assert (table["sd"] / table["without_noise"]).mean() == pytest.approx(1.05, abs=0.015)


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
