"""docs/how-to/publish-a-chain.md: what it shows runs in order, in Python and in the shell."""

import re
from pathlib import Path

import pytest

from dpmc.cli.main import main
from dpmc.privacy.data_ledger import DataLedger
from dpmc.releases import files as release_files

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/publish-a-chain.md"
#: Smaller numbers, with which the page runs in seconds.
SHORTER = {"trials=12": "trials=2", "    epsilon=4,\n": "    epsilon=4,\n    iterations=60,\n"}


@pytest.mark.slow
def test_the_page_runs_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    for long, short in SHORTER.items():
        assert text.count(long) == 1
        text = text.replace(long, short)
    names: dict[str, object] = {"__name__": "page"}
    commands = 0
    for language, body in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if language == "python":
            exec(body, names)
        elif not language and not body.startswith("pip "):
            for line in body.splitlines():
                commands += 1
                assert main(line.split()[1:]) == 0, line
    out = capsys.readouterr().out
    assert commands == 6 and "All of it is allowed in a release." in out and "'iterations': " in out
    ledger = DataLedger.open("people.ledger")
    assert ledger.entries[0] == release_files.entry_of("release.nc")
    assert len(ledger.entries) == 2 and ledger.left[0] == pytest.approx(1.8)
    assert names["scale"] == pytest.approx(10.0, rel=1e-6) and len(names["histogram"]) == 9  # type: ignore[arg-type]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("people.csv", "people.ledger", "people.yaml", "release.nc")
    ]


@pytest.mark.slow
def test_the_commands_run_in_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(("init", str(tmp_path), "--quiet")) == 0
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    [body] = re.findall(r"^```shell\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    for line in body.splitlines():
        shorter = ("--iterations", "5") if line.startswith("dpmc release") else ()
        assert main((*line.split()[1:], *shorter)) == 0, line
    assert DataLedger.open("measurements.ledger").spent[0] == 2.0
