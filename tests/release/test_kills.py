"""A release that is killed goes on from what it had released; nothing is spent twice, nothing is lost."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).with_name("kills.py")
NUMBERS = {"log-ratio": 1, "gradient": 2}  #: in one answer
#: Answers of a run of two chains before the first iteration, and in each, by name.
ONCE: dict[str, dict[str, int]] = {"dp-penalty": {}, "dp-mala": {"gradient": 2}}
EACH = {"dp-penalty": {"log-ratio": 2}, "dp-mala": {"log-ratio": 2, "gradient": 2}}


def killed(folder: Path, kills: int, seed: int, method: str) -> dict[str, Any]:
    command = [sys.executable, str(SCRIPT), str(folder), str(kills), str(seed), method]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=550)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def counts(events: list[dict[str, Any]]) -> dict[str, int]:
    return {event["name"]: event["count"] for event in events}


def check(result: dict[str, Any], kills: int, method: str) -> None:
    ledger = {part: counts(result["ledger"][part]) for part in ("reserved", "performed", "forfeited")}
    assert result["killed"] == kills and result["entries"] == 1
    assert sorted(result["files"]) == ["answers", "ledger", "release.nc"]
    assert result["problems"] == []
    # All iterations that were asked for were made, whatever the kills took.
    assert result["iterations"] == 120 and result["forfeited"] == result["spare"]
    assert result["draws"] == [2, result["iterations"], 2]
    for name, count in ledger["performed"].items():
        assert count == ONCE[method].get(name, 0) + EACH[method][name] * result["iterations"]
    for name, count in ledger["reserved"].items():
        assert count == ledger["performed"][name] + ledger["forfeited"].get(name, 0)
    spent = {
        part: sum(NUMBERS[name] * count for name, count in ledger[part].items())
        for part in ("performed", "reserved")
    }
    # Answers that got noise, in all processes together, are no more than were reserved.
    assert spent["performed"] <= result["answers"] <= spent["reserved"]


@pytest.mark.parametrize("method", ["dp-penalty", "dp-mala"])
def test_a_release_killed_a_few_times(method: str, tmp_path: Path) -> None:
    check(killed(tmp_path, 3, 5, method), 3, method)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["dp-penalty", "dp-mala"])
def test_a_release_killed_25_times(method: str, tmp_path: Path) -> None:
    result = killed(tmp_path, 25, 6, method)
    check(result, 25, method)
