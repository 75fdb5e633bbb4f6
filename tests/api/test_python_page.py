"""docs/python.md: its examples run as they stand, one after the other, and print what the page shows."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "python.md").read_text()


@pytest.mark.slow
def test_the_examples_print_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    printed = io.StringIO()
    for language, body in re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        if language == "python":
            with contextlib.redirect_stdout(printed):
                exec(body, names)
        else:
            assert printed.getvalue() == body
            printed = io.StringIO()
    assert printed.getvalue() == ""
    model, rows = names["model"], np.loadtxt("people.csv", delimiter=",", skiprows=1)
    posterior = model.posterior(rows[:, [2, 0, 1]], 250 / 5000)  # type: ignore[attr-defined]
    half = names["half"].values  # type: ignore[attr-defined]
    sd = np.sqrt(np.diag(posterior.covariance()))
    assert (np.abs(half.mean(axis=0) - posterior.mean()) < 1.0 * sd).all()
    without = ", ".join(f"{abs(value):.2f}" for value in posterior.mean())
    assert f"(Without privacy: {without}.)" in PAGE
