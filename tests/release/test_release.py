"""`dpmc.release`: what is in its file, what it takes from the ledger, what it refuses, and what it says."""

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import dpmc
from dpmc.algorithms.dp_penalty import exact_multiplier
from dpmc.cli.main import main
from dpmc.data.tables import read_rows
from dpmc.models.columns import Coding
from dpmc.models.fingerprint import public_values
from dpmc.models.own import given_model
from dpmc.privacy import data_ledger
from dpmc.privacy.data_ledger import DataLedger
from dpmc.privacy.ledger import BudgetExceeded, ReleaseLedger
from dpmc.privacy.secure_noise import SecureNoise
from dpmc.releases import files as release_files
from dpmc.releases import loop as releases
from dpmc.releases.facts import BLOCKS, SPARE
from release import of_numbers
from release.conftest import NUMBERS

read_release_rows = partial(read_rows, private=True)

STEP = [0.1, 0.1]
HMC = {"tau_l": 2.0, "tau_g": 2.0, "step_size": STEP, "mass": [1.0, 1.0], "clip_l": 1.0, "clip_g": 1.0}
BATCH = {"tau": 8.0, "batch_size": 6, "clip": 1.0, "proposal_sd": STEP}
RELEASED: dict[str, dict[str, Any]] = {
    "dp-penalty": {"tau": 2.0, "clip": 1.0, "proposal_sd": STEP},
    "dp-penalty-guided": {"tau": 2.0, "clip": 1.0, "proposal_sd": STEP},
    "dp-hmc": {**HMC, "steps": 2, "jitter": "halton", "reuse_gradients": True},
    "dp-mala": HMC,
    "minibatch-penalty": BATCH,
    "minibatch-penalty-guided": BATCH,
    "dp-sgld": {"batch_size": 6, "clip": 1.0, "step_size": 0.1},
    "dp-sgnht": {"batch_size": 6, "clip": 1.0, "step_size": 0.1, "diffusion": 4.0},
    "dp-barker": {"batch_size": 100, "proposal_sd": STEP},
    "noisy-statistics": {"clip": 2.0},
}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "rwmh": ({"proposal_sd": STEP}, "no noise"),
    "hmc": ({"steps": 2, "step_size": STEP, "mass": [1.0, 1.0]}, "no noise"),
    "tuna-mh": ({"batch_mean": 5.0, "proposal_sd": STEP}, "no noise"),
    "dp-fast-mh-full": (
        {"variant": "corrected", "epsilon": 0.1, "delta": 1e-6, "clip": 1.0, "proposal_sd": STEP},
        "exact random bits",
    ),
}


@pytest.mark.parametrize("method", RELEASED)
def test_every_private_algorithm_makes_a_file_that_may_be_published(
    method: str, make: Any, ledger: DataLedger, tmp_path: Path
) -> None:
    output = tmp_path / "release.nc"
    tree = make(
        algorithm=method,
        hyperparameters=RELEASED[method],
        epsilon=20,
        chains=2,
        output=output,
        rows=400 if method == "dp-barker" else 60,  # `barker-pld` needs 100 rows in a batch
    )
    assert release_files.check(tree) == []
    back = release_files.read(output)
    assert release_files.check(back) == [] and release_files.hidden(output, back) == []
    assert back["posterior/theta"].shape == (2, 12, 2)
    entry = json.loads(back.attrs["data_ledger"])
    ledger.verify(entry)
    assert (entry["epsilon"], entry["delta"]) == (20.0, 1e-3)
    own = json.loads(back.attrs["ledger"])
    (price,) = own["prices"]
    assert own["budget"]["epsilon"] + price["epsilon"] <= 20.0
    assert own["budget"]["delta"] + price["delta"] <= 1e-3
    assert 0.0 < price["delta"] < 1e-5
    iterations = {key: counts_of(own[key]) for key in ("performed", "forfeited", "reserved")}
    assert iterations["performed"] + iterations["forfeited"] == iterations["reserved"]
    assert sorted(os.listdir(tmp_path)) == ["people.ledger", "release.nc"]


@pytest.mark.parametrize("method", REFUSED)
def test_what_cannot_be_released_is_refused_with_its_reason(
    method: str, make: Any, ledger: DataLedger
) -> None:
    values, reason = REFUSED[method]
    with pytest.raises(dpmc.DpmcError, match=reason):
        make(algorithm=method, hyperparameters=values)
    assert DataLedger.open(ledger.path).entries == []


def test_calls_that_are_refused_spend_nothing(make: Any, ledger: DataLedger, tmp_path: Path) -> None:
    (tmp_path / "there.nc").touch()
    for arguments, reason in (
        ({"epsilon": "inf"}, "finite epsilon"),
        ({"epsilon": 0.01}, "exceeds the budget"),
        ({"delta": 0.02}, "1/n"),
        ({"thin": 13}, "thin"),
        ({"chains": 2, "start": [[0.0, 1.0]]}, "start"),
        ({"output": tmp_path / "there.nc"}, "exists"),
        ({"output": tmp_path / "a\\b.nc"}, "must be UTF-8 without backslashes"),
        ({"ledger": tmp_path / "none"}, "no such ledger"),
        ({"data": np.ones((60, 3))}, "columns"),
        ({"data": tmp_path / "rows.xlsx"}, "must end in"),
        ({"hyperparameters": {}}, "needs"),
    ):
        with pytest.raises(dpmc.DpmcError, match=reason):
            make(**arguments)
    assert DataLedger.open(ledger.path).entries == []
    small = DataLedger.create(tmp_path / "small.ledger", 3.0, 0.5)
    with pytest.raises(BudgetExceeded, match="left of the data set"):
        make(ledger=small.path, output=tmp_path / "small.nc")
    assert not list(tmp_path.glob("*.partial"))


def test_noise_that_follows_from_the_budget_has_no_digits_to_hide_in(make: Any) -> None:
    tree = make(algorithm="noisy-statistics", hyperparameters={"clip": 2.0})
    for factor, found in ((1.0, False), (1.0 + 1e-13, False), (1.0 + 1e-9, True)):
        own = json.loads(tree.attrs["ledger"])
        for event in (*own["reserved"], *own["performed"]):
            event["noise_multiplier"] *= factor
        other = tree.copy()
        other.attrs = {
            **tree.attrs,
            "ledger": json.dumps(ReleaseLedger.from_json(own).to_json(), sort_keys=True),
        }
        assert bool(release_files.check(other)) == found


def test_a_regression_that_a_release_cannot_describe_spends_nothing(make: Any, ledger: DataLedger) -> None:
    model = dpmc.LinearRegression("y", [], levels={"r": [f"level {i:0100d}" for i in range(200)]})
    with pytest.raises(dpmc.DpmcError, match="description: of a LinearRegression must be the call"):
        make(np.zeros((60, 2)), model, hyperparameters={"tau": 2.0, "clip": 1.0, "proposal_sd": 0.1})
    assert DataLedger.open(ledger.path).entries == []


def test_an_entry_that_could_not_be_confirmed_is_found_again(
    make: Any, ledger: DataLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line is in the file when the disk reports an error: the next call must not pay again."""
    write = data_ledger._write

    def broken(*arguments: Any) -> None:
        write(*arguments)
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(data_ledger, "_write", broken)
        with pytest.raises(dpmc.DpmcError, match="cannot be written"):
            make(output=tmp_path / "release.nc")
    tree = make(output=tmp_path / "release.nc")
    assert DataLedger.open(ledger.path).entries == [json.loads(tree.attrs["data_ledger"])]


def test_the_joint_epsilon_of_releases_has_their_prices(make: Any, ledger: DataLedger) -> None:
    trees = [make(), make()]
    joint = dpmc.joint_epsilon(*trees)
    prices = [json.loads(tree.attrs["ledger"])["prices"][0] for tree in trees]
    left = [json.loads(tree.attrs["ledger"])["budget"]["delta"] for tree in trees]
    assert all(price["delta"] > 0.0 for price in prices)
    exact = sum(map(Fraction, [*left, *(price["delta"] for price in prices)]))
    assert sum(map(Fraction, left)) < exact <= Fraction(joint.delta)
    with pytest.raises(dpmc.DpmcError, match="has a price"):
        dpmc.joint_epsilon(*trees, delta=1e-3)


def test_files_are_summarised_and_joined_as_results_are(make: Any, tmp_path: Path) -> None:
    output = tmp_path / "release.nc"
    tree = make(output=output)
    pandas.testing.assert_frame_equal(dpmc.summary(output), dpmc.summary(tree))
    assert dpmc.joint_epsilon(output, tree) == dpmc.joint_epsilon(tree, tree)
    doctored = tree.copy()
    doctored.attrs["n"] = 61
    release_files._write(output, doctored)
    for question in (dpmc.summary, dpmc.joint_epsilon):
        with pytest.raises(dpmc.DpmcError, match="n: not as in the entry"):
            question(output)


def test_a_release_says_which_model_it_is_of(make: Any) -> None:
    model = dpmc.LinearRegression({"y": (1.0, 2.0)}, {"x": (3.0, 4.0)}, tempering=20, prior_sd=2)
    tree = make(model=model)
    assert tree.attrs["description"] == repr(model)
    assert repr(eval(tree.attrs["description"], {"LinearRegression": dpmc.LinearRegression})) == repr(model)
    assert f"model: {model!r}" in release_files.contents(tree)
    assert "protects one row of 60, replaced by any other" in release_files.contents(tree)
    for wrong in ("", "a\nb", 3):
        tree.attrs["description"] = wrong
        assert "attribute description" in release_files.check(tree)[0]


def test_a_refused_release_leaves_no_lock(make: Any, tmp_path: Path) -> None:
    few = DataLedger.create(tmp_path / "few.ledger", 3.0, 0.5)
    with pytest.raises(BudgetExceeded):
        make(ledger=few.path, output=tmp_path / "release.nc")
    assert not list(tmp_path.glob(".*.lock"))


def test_a_scale_that_no_answer_could_have_is_refused_beforehand(make: Any, ledger: DataLedger) -> None:
    values = {"batch_size": 20, "proposal_sd": STEP, "clip_factor": 1e-7}
    with pytest.raises(dpmc.DpmcError, match="clip_factor: is too small"):
        make(algorithm="dp-barker", hyperparameters=values, accountant="rdp", epsilon=20)
    assert DataLedger.open(ledger.path).entries == []


def test_releases_in_threads_are_made_one_after_another(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else one would redirect the streams that another restores."""
    inside, most = [0], [0]
    advance = releases.ReleaseLoop.advance

    def counted(*arguments: Any) -> None:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        time.sleep(0.01)
        advance(*arguments)
        inside[0] -= 1

    monkeypatch.setattr(releases.ReleaseLoop, "advance", counted)
    threads = [threading.Thread(target=make) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] and len(threads) == 3


def test_no_call_repeats_another(make: Any, ledger: DataLedger) -> None:
    first, again = make(), make()
    assert not np.array_equal(first["posterior/theta"], again["posterior/theta"])
    assert len(DataLedger.open(ledger.path).entries) == 2


def test_without_opendp_nothing_is_spent(
    make: Any, ledger: DataLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(dpmc.DpmcError, match="opendp==0.16"):
        make()
    assert DataLedger.open(ledger.path).entries == []


def counts_of(events: list[dict[str, Any]]) -> Counter[str]:
    return Counter({event["name"]: event["count"] for event in events})


def interrupted(make: Any, monkeypatch: pytest.MonkeyPatch, blocks: int, **arguments: Any) -> None:
    """Make a release that stops in the middle of a block, after `blocks` others."""
    advance, left = releases.ReleaseLoop.advance, iter(range(blocks))

    def stopped(self: Any, m: int) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt
        advance(self, m)

    with monkeypatch.context() as patch:
        patch.setattr(releases.ReleaseLoop, "advance", stopped)
        with pytest.raises(KeyboardInterrupt):
            make(**arguments)


def test_a_stopped_release_goes_on_without_its_block(
    make: Any, ledger: DataLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "release.nc"
    interrupted(make, monkeypatch, 5, output=output)
    unfinished = releases.np.load(f"{output}.partial")["draws"]
    tree = make(output=output)
    assert (tree.attrs["iterations"], tree.attrs["forfeited"]) == (12, SPARE)
    np.testing.assert_array_equal(tree["posterior/theta"].values[:, :5], unfinished)
    assert len(DataLedger.open(ledger.path).entries) == 1 and release_files.check(tree) == []
    own = json.loads(tree.attrs["ledger"])
    assert [event["count"] for event in own["forfeited"]] == [SPARE]


REUSING = {"algorithm": "dp-mala", "hyperparameters": {**HMC, "reuse_gradients": True}}
ONE_SUM = {"algorithm": "noisy-statistics", "hyperparameters": RELEASED["noisy-statistics"]}


def stopped_before(make: Any, monkeypatch: pytest.MonkeyPatch, **arguments: Any) -> None:
    """Make a release that stops when what it asks before the first iteration is computed, and lost."""
    prepare = releases.ReleaseLoop._prepare

    def stopped(self: Any, *given: Any) -> None:
        prepare(self, *given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(releases.ReleaseLoop, "_prepare", stopped)
        with pytest.raises(KeyboardInterrupt):
            make(**arguments)


def test_a_release_that_stops_before_its_first_block_pays_for_its_first_gradient_again(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "release.nc"
    for _ in range(2):
        stopped_before(make, monkeypatch, output=output, **REUSING)
    interrupted(make, monkeypatch, 0, output=output, **REUSING)
    tree = make(output=output, **REUSING)
    assert (tree.attrs["iterations"], tree.attrs["forfeited"]) == (12, 2 * SPARE)
    ledger = json.loads(tree.attrs["ledger"])
    assert counts_of(ledger["performed"]) == {"gradient": 13, "log-ratio": 12}
    assert counts_of(ledger["forfeited"]) == {"gradient": 2 * SPARE, "log-ratio": 2 * SPARE}
    assert release_files.check(tree) == []


def test_a_released_sum_survives_a_stop_and_iterations_are_made_again(
    make: Any, ledger: DataLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, sums = tmp_path / "release.nc", []
    for blocks in (0, 0, 0):  # draws are one block
        interrupted(make, monkeypatch, blocks, output=output, chains=2, **ONE_SUM)
        with releases.np.load(f"{output}.partial") as saved:
            sums.append(saved["carried"][:, :2])
    tree = make(output=output, chains=2, **ONE_SUM)
    assert np.unique(np.concatenate(sums), axis=0).shape == (1, 2)
    assert (tree.attrs["iterations"], tree.attrs["forfeited"]) == (12, 0)
    own = json.loads(tree.attrs["ledger"])
    assert own["performed"] == own["reserved"] and own["performed"][0]["count"] == 1
    assert release_files.check(tree) == [] and len(DataLedger.open(ledger.path).entries) == 1


@pytest.mark.parametrize("more", [{}, {"noise_multiplier": 30.0}], ids=["", "with budget left"])
def test_a_sum_that_is_lost_is_not_released_again(
    make: Any, ledger: DataLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, float]
) -> None:
    one_sum = {**ONE_SUM, "hyperparameters": {**RELEASED["noisy-statistics"], **more}}
    output, shared = tmp_path / "release.nc", []
    of_source = SecureNoise.shared
    monkeypatch.setattr(SecureNoise, "shared", lambda *given: shared.append(1) or of_source(*given))
    stopped_before(make, monkeypatch, output=output, **one_sum)
    for _ in range(2):
        with pytest.raises(dpmc.DpmcError, match=r"release.nc.partial: .* is paid for and lost"):
            make(output=output, **one_sum)
    assert shared == [1] and len(DataLedger.open(ledger.path).entries) == 1


@pytest.mark.parametrize("epsilon", [0.5, 4.0, 30.0])
def test_the_noise_of_a_sum_follows_from_what_its_price_leaves(make: Any, epsilon: float) -> None:
    tree = make(epsilon=epsilon, **ONE_SUM)
    own = json.loads(tree.attrs["ledger"])
    (price,), (event,) = own["prices"], own["performed"]
    assert price["numbers"] == 2  # y and y²
    left, of_all = own["budget"], exact_multiplier(epsilon, 1e-3)
    assert left["epsilon"] + price["epsilon"] <= epsilon and left["delta"] + price["delta"] <= 1e-3
    of_left = exact_multiplier(left["epsilon"], left["delta"])
    assert of_all <= of_left <= event["noise_multiplier"] <= of_left * (1.0 + 2e-12)
    assert event["noise_multiplier"] == pytest.approx(of_all, rel=1e-3)
    assert json.loads(tree.attrs["hyperparameters"]) == {"clip": 2.0}


def test_noise_that_is_given_is_kept_and_must_fit_the_budget(make: Any, ledger: DataLedger) -> None:
    values = {"clip": 2.0, "noise_multiplier": 3.0}
    tree = make(algorithm="noisy-statistics", hyperparameters=values)
    assert json.loads(tree.attrs["ledger"])["performed"][0]["noise_multiplier"] == 3.0
    with pytest.raises(BudgetExceeded):
        make(algorithm="noisy-statistics", hyperparameters={**values, "noise_multiplier": 0.1})
    assert len(DataLedger.open(ledger.path).entries) == 1
    assert make(iterations=None, **ONE_SUM).attrs["iterations"] == 1000  # draws cost nothing


def test_a_run_that_stopped_after_its_entry_finds_it_again(
    make: Any, ledger: DataLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*arguments: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(releases, "LatticeEvaluator", stop)
        with pytest.raises(KeyboardInterrupt):
            make(output=tmp_path / "release.nc")
    tree = make(output=tmp_path / "release.nc")
    assert tree.attrs["iterations"] == 12
    assert len(DataLedger.open(ledger.path).entries) == 1


def public_part(output: Path) -> tuple[dict[str, Any], int]:
    """Return what a file says besides draws and random names, and its size."""
    attrs = dict(release_files.read(output).attrs)
    entry = json.loads(attrs.pop("data_ledger"))
    about = {key: value for key, value in entry["about"].items() if key != "run"}
    return {**attrs, "about": about}, output.stat().st_size


@pytest.mark.parametrize("settings", [{}, REUSING], ids=["dp-penalty", "dp-mala reusing"])
def test_a_file_does_not_tell_how_often_the_process_was_stopped(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    """Else it would tell of run times, which may depend on a row, wherever processes have a time limit."""
    of_stops = {}
    for stops in (0, 1, SPARE):
        output = tmp_path / f"{stops}.nc"
        for blocks in range(stops):
            interrupted(make, monkeypatch, blocks % 2, output=output, **settings)
        make(output=output, **settings)
        of_stops[stops] = public_part(output)
        assert main(["check-release", str(output), "--quiet"]) == 0
    assert of_stops[0] == of_stops[1] == of_stops[SPARE]


def test_a_release_that_is_stopped_too_often_makes_no_file(
    make: Any, ledger: DataLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "release.nc"
    for _ in range(SPARE + 1):
        interrupted(make, monkeypatch, 0, output=output)
    with pytest.raises(dpmc.DpmcError, match=r"stopped more often than its 5 spare iterations"):
        make(output=output)
    assert not output.exists() and len(DataLedger.open(ledger.path).entries) == 1


def test_spare_iterations_are_part_of_the_budget(make: Any, ledger: DataLedger, tmp_path: Path) -> None:
    most = make(iterations=None).attrs["iterations"]  # without an output none are spare
    tree = make(iterations=None, output=tmp_path / "all.nc")
    assert tree.attrs["iterations"] + tree.attrs["forfeited"] == most
    assert tree.attrs["forfeited"] == SPARE * max(1, most // BLOCKS)
    entries = len(DataLedger.open(ledger.path).entries)
    with pytest.raises(BudgetExceeded, match="spare ones, for processes that are stopped, exceed the budget"):
        make(iterations=most, output=tmp_path / "more.nc")
    assert len(DataLedger.open(ledger.path).entries) == entries


def test_an_output_that_cannot_be_written_spends_nothing(
    make: Any, ledger: DataLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    for name in ("x" * 300 + ".nc", "file/release.nc", os.fsdecode(b"\xe9.nc"), os.fsdecode(b"\xe9/a.nc")):
        with pytest.raises(dpmc.DpmcError, match="cannot be written"):
            make(output=tmp_path / name)
    (tmp_path / os.fsdecode(b"\xe9")).rmdir()
    for odd in ("", ".", "/", "a\0b.nc", 5, b"a.nc", ["a.nc"]):
        for key in ("output", "ledger", *(("hyperparameters",) if isinstance(odd, str) else ())):
            with pytest.raises(dpmc.DpmcError, match=f"^{key}: .* must be the path of a file$"):
                make(**{key: odd})
    for key in ("ledger", "hyperparameters"):
        with pytest.raises(dpmc.DpmcError, match="x: cannot be read"):
            make(**{key: "x" * 300})
    assert DataLedger.open(ledger.path).entries == []
    monkeypatch.setenv("HOME", str(tmp_path))
    make(output="~/release.nc", ledger=f"~/{ledger.path.name}")
    make(output=tmp_path / ("x" * 245 + ".nc"))  # as long as a file system takes
    assert sorted(path.suffix for path in tmp_path.iterdir()) == ["", ".ledger", ".nc", ".nc"]


class Keeping:
    """A model that keeps the rows of its last call."""

    dimension = 1
    rows: Any = None

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        self.rows = rows.copy()
        return np.asarray(-abs(rows[:, 0] - theta[0]))


def test_the_digest_of_a_model_is_the_same_elsewhere_and_has_no_rows_that_it_keeps() -> None:
    model, (_, kept) = dpmc.LinearRegression("y", ["x"], sd=3.0), given_model(Keeping())
    code = "import dpmc; from dpmc.models.fingerprint import public_values as p; "
    code += "print(p(dpmc.LinearRegression('y', ['x'], sd=3.0), 2))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == public_values(model, 2)
    before = public_values(kept.model, 1)
    kept.model.log_likelihood(np.zeros(1), np.ones((5, 1)))
    assert public_values(kept.model, 1) == before


def test_an_unfinished_release_of_other_arguments_or_another_ledger_is_refused(
    make: Any, ledger: DataLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "release.nc"
    start = [0.5, 1.0]
    interrupted(make, monkeypatch, 2, output=output, start=start)
    for changed in ({"iterations": 13}, {"epsilon": 5}, {"chains": 2}, {"start": [0.0, 0.0]}):
        with pytest.raises(dpmc.DpmcError, match="other arguments"):
            make(output=output, **{"start": start, **changed})
    for changed in ({"sd": 9.0}, {"prior_sd": 0.1}):
        with pytest.raises(dpmc.DpmcError, match=r"other arguments \(.*model_values"):
            model = dpmc.LinearRegression("y", ["x"], true_theta=start, tempering=20, **changed)
            make(output=output, model=model, start=start)
    other = DataLedger.create(tmp_path / "other.ledger", 100.0, 0.1)
    with pytest.raises(dpmc.DpmcError, match=r"other arguments \(ledger\)"):
        make(output=output, ledger=other.path, start=start)
    whole = (tmp_path / "release.nc.partial").read_bytes()
    (tmp_path / "release.nc.partial").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(dpmc.DpmcError, match="cannot be read as an unfinished release"):
        make(output=output, start=start)
    assert len(DataLedger.open(ledger.path).entries) == 1 and other.entries == []


class Talking:
    """A model that prints, warns, logs and fails if a row is negative."""

    dimension = 2
    columns = ("y", "x")

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        if (rows[:, 0] < -2.0).any():
            print("a row is negative")
            os.write(2, b"a row is negative\n")
            raise ValueError(f"a row is negative: {rows.min()}")
        return -0.5 * (rows[:, 0] - theta[0] - theta[1] * rows[:, 1]) ** 2


def differing(folder: Path) -> dict[str, Path]:
    """Write data sets of 50 rows that differ in one row, or in all."""
    generator = np.random.default_rng(1)
    x = generator.standard_normal(50)
    good = [f"{0.5 + a:.6f},{a:.6f}" for a in x]
    sets = {
        "rows": good,
        "neighbour": [*good[:20], "9.5,-3.25", *good[21:]],
        "negative": [*good[:20], "-7.5,0.5", *good[21:]],
        "zeros": ["0,0"] * 50,
        "huge": ["1e150,-1e150"] * 50,
        "beyond": [*good[:20], "1e400,1", *good[21:]],
        "text": [*good[:20], "abc,NaN", *good[21:]],
        "blank": [*good[:20], "", *good[21:]],
        "quotes": [*good[:20], '"1,2', *good[21:]],
        "many": [*good[:20], "1,2,3,4", *good[21:]],
        "bytes": [*good[:20], "\ufffd\x00,1", *good[21:]],
    }
    paths = {}
    for name, lines in sets.items():
        paths[name] = folder / name / "people.csv"
        paths[name].parent.mkdir()
        paths[name].write_text("\n".join(["y,x", *lines]) + "\n")
    return paths


STUDY = """
title: people
delta: 1e-3
seeds: 1
tuning: {mode: none}
models:
  people: {model: "mymodel:model", data: people.csv, epsilons: [4]}
methods:
  dp-penalty: {}
  noisy-statistics: {}
"""


@pytest.mark.parametrize(
    ("model", "method"),
    [("linear", "dp-penalty"), ("talking", "dp-penalty"), ("normal", "noisy-statistics")],
)
def test_neither_file_nor_messages_depend_on_the_rows(
    model: str,
    method: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    models = {"linear": dpmc.LinearRegression("y", ["x"]), "talking": Talking(), "normal": NUMBERS}
    seen = {}
    for name, path in differing(tmp_path).items():
        monkeypatch.chdir(path.parent)
        DataLedger.create("people.ledger", 10.0, 0.01)
        capfd.readouterr()
        tree = dpmc.release(
            models[model],
            "people.csv",
            method,
            epsilon=4,
            delta=1e-3,
            ledger="people.ledger",
            hyperparameters=RELEASED[method],
            iterations=8,
            output="release.nc",
        )
        said = capfd.readouterr()
        attrs = {key: value for key, value in tree.attrs.items() if key != "data_ledger"}
        entry = json.loads(tree.attrs["data_ledger"])
        entry = {key: entry[key] for key in ("epsilon", "delta", "number")} | {
            "about": {key: value for key, value in entry["about"].items() if key != "run"}
        }
        sizes = {file: os.path.getsize(file) for file in sorted(os.listdir()) if file != "people.csv"}
        assert np.isfinite(tree["posterior/theta"]).all()
        variables = {group.path: sorted(map(str, group.variables)) for group in tree.subtree}
        seen[name] = (attrs, entry, sizes, variables, said)
    for name, facts in seen.items():
        assert facts == seen["rows"], name
    said = seen["rows"][4]
    assert "8/8 iterations" in said.err and (model == "talking" or said.out == "")  # a trial on public rows


@pytest.mark.parametrize("method", ["dp-penalty", "noisy-statistics"])
def test_the_command_makes_the_same_file(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    path = differing(tmp_path)["text"]
    monkeypatch.chdir(path.parent)
    text = f"import dpmc\nmodel = dpmc.{dpmc.LinearRegression('y', ['x'])!r}\n"
    monkeypatch.delitem(sys.modules, "mymodel", raising=False)
    Path("mymodel.py").write_text(
        Path(of_numbers.__file__).read_text() if method == "noisy-statistics" else text
    )
    Path("study.yaml").write_text(STUDY)
    Path("h.yaml").write_text(json.dumps(RELEASED[method]))
    assert main("ledger init people.ledger --epsilon 10 --delta 0.01".split()) == 0
    command = f"release --study study.yaml --model people --method {method} --epsilon 4"
    command += " --ledger people.ledger --hyperparameters h.yaml --iterations 8 --n 49 --output release.nc"
    capfd.readouterr()
    assert main(command.split()) == 0, capfd.readouterr()
    said = capfd.readouterr()
    assert said.out == "" and [line.split()[-2] for line in said.err.splitlines()] == [
        f"{i}/8" for i in (range(1, 9) if method == "dp-penalty" else (8,))
    ]
    assert main(["check-release", "release.nc"]) == 0
    assert release_files.read(Path("release.nc")).attrs["n"] == 49
    assert main(command.split()) == 2
    assert "exists" in capfd.readouterr().err


def test_rows_for_a_release_keep_every_line_and_read_numbers_alike(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('b,a\n1, 2 \n"3",x\n\n4,5,6\n"7\n8,1e3\r\n')
    rows = read_release_rows(path, ["a", "b"])
    nan = np.nan
    wanted = [[2, 1], [nan, 3], [nan, nan], [nan, nan], [nan, nan], [1000, 8]]
    np.testing.assert_array_equal(rows, wanted)
    table = pandas.DataFrame({"b": [1, "3", None], "a": ["2", "x", 7.0]})
    np.testing.assert_array_equal(read_release_rows(table, ["a", "b"]), [[2, 1], [nan, 3], [7, nan]])
    np.testing.assert_array_equal(read_release_rows(np.array([1.0, nan]), None), [[1], [nan]])
    coding = Coding.of({"a": ("low", "high")}, {"a": "low", "b": 9})
    table = pandas.DataFrame({"b": ["1", "NA", ""], "a": ["high", "odd", None]})
    np.testing.assert_array_equal(read_release_rows(table, ["a", "b"], coding), [[1, 1], [nan, 9], [0, 9]])
    path.write_text("1,2\n3,4\n")
    with pytest.raises(dpmc.DpmcError, match="names of the columns"):
        read_release_rows(path)
