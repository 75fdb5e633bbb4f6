"""TAB completes commands and options, by argcomplete's documented protocol."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("argcomplete")


@pytest.mark.parametrize(
    ("line", "answers"),
    [
        ("dpmc ev", {"evaluate"}),
        ("dpmc b", {"budget", "budgets"}),
        ("dpmc sample --hyp", {"--hyperparameters"}),
        ("dpmc plot --fi", {"--figure"}),
    ],
)
def test_completion(line, answers, tmp_path):
    told = tmp_path / "told"
    asked = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(told),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    done = subprocess.run([sys.executable, "-m", "dpmc"], env={**os.environ, **asked}, check=False)
    assert done.returncode == 0
    assert set(told.read_text().replace("\013", " ").split()) == answers
