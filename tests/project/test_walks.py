"""The three walks of the architecture page: their commands call these functions, in this order."""

import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pandas as pd
import pytest

from dpmc.cli.main import main
from dpmc.common.shipped import PACKAGE
from dpmc.evaluators import kernels
from dpmc.privacy.accountants import Accountant

PAGE = Path(__file__).parents[2] / "docs/explanation/architecture.md"
LINE = re.compile(r"^\d+\. `([\w/]+\.py)`: `([\w.]+)`", re.MULTILINE)
CELL = "--study thesis --model circle --method dp-penalty --epsilon 1"
METRICS = pd.DataFrame(
    [("thesis", "circle", "dp-penalty", "1", seed, "mmd", 0.1 + seed / 100) for seed in range(3)],
    columns=["study", "model", "method", "epsilon", "seed", "metric", "value"],
)
WALKS = {
    "One chain": f"sample {CELL} --seed 0 --iterations 5 --output chain.nc --quiet",
    "One figure": "plot --study thesis --figure circle --metrics metrics.csv --output figure.png",
    "One budget": f"budget {CELL}",
}


def first_calls(command: str) -> dict[tuple[str, str], int]:
    """Run a command; return the order in which functions of dpmc are called first, by file and name."""
    order: dict[tuple[str, str], int] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(PACKAGE)):
            file = str(Path(code.co_filename).relative_to(PACKAGE))
            order.setdefault((file, code.co_qualname), len(order))

    Accountant._delta_of.cache_clear()  # of earlier tests, with which nothing is computed
    sys.setprofile(note)
    try:
        main(command.split())
    finally:
        sys.setprofile(None)
    return order


@pytest.mark.parametrize("name", WALKS)
def test_a_walk_is_in_the_order_of_calls(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    METRICS.to_csv("metrics.csv", index=False)
    text = PAGE.read_text(encoding="utf-8").partition(f"**{name}**")[2].partition("\n**")[0]
    lines = [line for line in LINE.findall(text) if not hasattr(getattr(kernels, line[1], None), "py_func")]
    assert len(lines) > 5
    order = first_calls(WALKS[name])
    capsys.readouterr()
    assert set(lines) <= set(order), "a function that is not called"
    assert sorted(lines, key=order.__getitem__) == lines
