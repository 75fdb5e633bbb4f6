"""`dpmc ledger` and `dpmc check-release`: what they print, refuse and find."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import netCDF4
import pytest

from dpmc.cli.main import main
from dpmc.releases import files as release_files
from files.release_tree import entry, release_tree

Refused = Callable[..., str]


@pytest.fixture
def released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a ledger and a release that took its first entry."""
    monkeypatch.chdir(tmp_path)
    assert main(("ledger", "init", "people.ledger", "--epsilon", "3", "--delta", "1e-5", "--quiet")) == 0
    release_files.write(Path("release.nc"), release_tree(entry(Path("people.ledger"))))
    return tmp_path


def test_a_ledger_from_its_creation_to_its_verification(
    released: Path, capsys: pytest.CaptureFixture[str], refused: Refused
) -> None:
    assert capsys.readouterr() == ("", "")
    assert main(("ledger", "init", "other.ledger", "--epsilon", "2", "--delta", "1e-6", "--name", "o")) == 0
    assert main(("ledger", "show", "people.ledger")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("epsilon 2.0, delta 1e-06") and "'people', ledger " in lines[1]
    assert "epsilon 0.5, delta 1e-06  'dp-penalty, people:Own'" in lines[2]
    assert lines[3:6] == [
        "total  epsilon 3.0, delta 1e-05",
        "spent  epsilon 0.5, delta 1e-06",
        "left   epsilon 2.5, delta 9e-06",
    ]
    assert lines[6] == "head   " + release_files.entry_of("release.nc")["hash"]
    assert main(("ledger", "verify", "people.ledger", "--against", "release.nc", "release.nc")) == 0
    assert capsys.readouterr().out.count("release.nc: entry 1 of this ledger") == 2
    assert "belongs to another ledger" in refused(
        "ledger", "verify", "other.ledger", "--against", "release.nc"
    )


def test_another_library_takes_from_the_ledger(
    released: Path, refused: Refused, capsys: pytest.CaptureFixture[str]
) -> None:
    take = ("ledger", "take", "people.ledger", "--epsilon", "2.25", "--delta", "0", "--about")
    assert main((*take, "histogram of age")) == 0
    assert main(("ledger", "show", "people.ledger")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "epsilon 2.25, delta 0.0  'other, histogram of age'" in lines[-5]
    assert lines[-2] == "left   epsilon 0.25, delta 9e-06"
    assert "only epsilon 0.25" in refused(*take, "again")
    assert "--about" in refused(*take, " ") and "--about: needed" in refused(*take[:-1])
    assert "delta = -1" in refused(*take[:-2], "-1", "--about", "x")
    assert main(("ledger", "verify", "people.ledger", "--against", "release.nc")) == 0


def test_a_restored_copy_and_an_edit_are_found(
    released: Path, refused: Refused, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy("people.ledger", "backup")
    release_files.write(Path("second.nc"), release_tree(entry(Path("people.ledger"))))
    verify = ("ledger", "verify", "people.ledger", "--against", "release.nc", "second.nc")
    assert main(verify) == 0
    now = Path("people.ledger").read_text()
    shutil.copy("backup", "people.ledger")
    assert "entry 2 of a release" in refused(*verify) and "older copy" in refused(*verify)
    Path("people.ledger").write_text(now.replace('"epsilon": 0.5', '"epsilon": 0.1'))
    assert "people.ledger: line 2: does not fit its hash" in refused(*verify)
    Path("people.ledger").write_text(now[:-20])
    capsys.readouterr()
    assert main(("ledger", "show", "people.ledger")) == 0
    assert "An incomplete last line is left out" in capsys.readouterr().out


def test_two_releases_of_one_entry_are_found(released: Path, refused: Refused) -> None:
    tree = release_tree(release_files.entry_of("release.nc"))
    theta, start = tree["posterior/theta"], tree["constant_data/theta_0"]
    theta[:] = theta.where(theta == start, 1.0)  # moves where a proposal was accepted
    release_files.write(Path("twin.nc"), tree)
    shutil.copy("release.nc", "copy.nc")
    verify = ("ledger", "verify", "people.ledger", "--against", "release.nc")
    assert main((*verify, "copy.nc")) == main((*verify[:-1], "twin.nc")) == 0
    assert "twin.nc: has the entry of release.nc and other content" in refused(*verify, "copy.nc", "twin.nc")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("init", "people.ledger", "--epsilon", "3", "--delta", "1e-6"),
            "exists; a ledger is never replaced",
        ),
        (("init", "new.ledger", "--delta", "1e-6"), "--epsilon: needed"),
        (("init", "new.ledger", "--epsilon", "3"), "--delta: needed"),
        (("init", "new.ledger", "--epsilon", "inf", "--delta", "1e-6"), "epsilon = inf"),
        (("init", "new.ledger", "--epsilon", "3", "--delta", "1"), "delta = 1.0"),
        (("init", "no/new.ledger", "--epsilon", "3", "--delta", "0.1"), "no/new.ledger: cannot be written"),
        (("init", "new.ledger", "--against", "release.nc"), "--against: not an option of dpmc ledger init"),
        (("show", "people.ledger", "--epsilon", "3"), "--epsilon: not an option of dpmc ledger show"),
        (("verify", "absent.ledger"), "absent.ledger: no such ledger"),
        (("verify", "release.nc"), "release.nc: line 1: is no line of a ledger"),
        (("verify", "people.ledger", "--against", "absent.nc"), "absent.nc: no such file"),
        (("verify", "people.ledger", "--against", "people.ledger"), "cannot be read as NetCDF"),
        (("spend", "people.ledger"), "invalid choice: 'spend'"),
    ],
)
def test_what_is_wrong_is_one_line(
    released: Path, refused: Refused, arguments: tuple[str, ...], words: str
) -> None:
    before = {path: path.read_bytes() for path in released.iterdir()}
    assert words in refused("ledger", *arguments)
    assert before == {path: path.read_bytes() for path in released.iterdir()}


def test_check_release_says_what_is_in_a_file(
    released: Path, refused: Refused, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(("check-release", "release.nc")) == 0
    said = capsys.readouterr().out
    about = release_files.entry_of("release.nc")
    for word in (about["id"], about["hash"], "epsilon '0.5'", "theta (chain 2, draw 3", " bytes", "mode"):
        assert word in said
    assert said.endswith("All of it is allowed in a release.\n")
    assert main(("check-release", "release.nc", "--quiet")) == 0
    assert capsys.readouterr() == ("", "")
    with netCDF4.Dataset("release.nc", "a") as file:
        file.setncatts({"history": "ncks rows.nc", "seed": 3})
    assert main(("check-release", "release.nc", "--quiet")) == 2
    out, error = capsys.readouterr()
    assert out.splitlines() == [
        "problem: /: attribute 'history' is not allowed",
        "problem: /: attribute 'seed' is not allowed",
    ]
    assert "2 problems, the first: /: attribute 'history' is not allowed" in error
    assert "people.ledger: cannot be read as NetCDF" in refused("check-release", "people.ledger")


def test_a_lab_file_cannot_become_a_release(
    folder: Path, refused: Refused, capsys: pytest.CaptureFixture[str]
) -> None:
    sample = ("sample", "--model", "circle", "--method", "dp-penalty", "--epsilon", "1", "--seed", "0")
    assert main((*sample, "--data", "circle.nc", "--output", "lab.nc", "--iterations", "3", "--quiet")) == 0
    for command in (
        ("check-release", "lab.nc"),
        ("ledger", "verify", "people.ledger", "--against", "lab.nc"),
    ):
        if command[0] == "ledger":
            entry(Path("people.ledger"))
        assert "lab.nc: mode: lab: it is reproducible from its seed" in refused(*command)
    with netCDF4.Dataset("lab.nc", "a") as file:
        file.mode, ledger = "release", json.loads(file.ledger)
    assert ledger["mode"] == "lab"
    capsys.readouterr()
    assert main(("check-release", "lab.nc")) == 2
    found = capsys.readouterr().out
    assert "problem: /private_diagnostics: group is not allowed" in found
    assert "problem: /: data_ledger is missing" in found
