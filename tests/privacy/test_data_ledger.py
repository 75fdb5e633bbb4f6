"""The ledger of a data set: sums within the totals, and no entry lost, changed or exchanged unnoticed."""

import json
import math
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmc.common.errors import DpmcError
from dpmc.common.values import not_above_text
from dpmc.privacy import data_ledger
from dpmc.privacy.data_ledger import DataLedger, require_entry
from dpmc.privacy.ledger import BudgetExceeded

KILLS = Path(__file__).with_name("ledger_kills.py")


@pytest.fixture
def ledger(tmp_path: Path) -> DataLedger:
    """A ledger of three entries, of a total of (3, 1e-6)."""
    made = DataLedger.create(tmp_path / "people.ledger", 3.0, 1e-6, "people")
    for epsilon in (1.0, 0.5, 0.25):
        made.take(epsilon, 1e-7, {"method": "dp-penalty", "model": "Own"})
    return made


def lines(ledger: DataLedger) -> list[bytes]:
    return ledger.path.read_bytes().splitlines()


def rewrite(ledger: DataLedger, changed: list[bytes]) -> None:
    ledger.path.write_bytes(b"".join(line + b"\n" for line in changed))


def test_what_was_taken_is_read_again(ledger: DataLedger) -> None:
    again = DataLedger.open(ledger.path)
    assert again.entries == ledger.entries and again.head == ledger.head and not again.torn
    assert again.total == (3.0, 1e-6) and again.header["name"] == "people"
    assert [entry["number"] for entry in again.entries] == [1, 2, 3]
    assert len({entry["id"] for entry in again.entries}) == 3
    assert again.spent[0] == 1.75 and again.left[0] == 1.25
    for entry in again.entries:
        require_entry(entry)
    for wrong in ({**again.entries[0], "epsilon": 0.5}, {}, []):
        with pytest.raises(ValueError, match="is not an entry of a ledger"):
            require_entry(wrong)
    ledger.verify()


# -- totals -----------------------------------------------------------------------------------------------

SHARES = st.lists(st.tuples(st.floats(1e-9, 2.0), st.floats(1e-15, 5e-7)), max_size=12)


@given(shares=SHARES, total=st.floats(0.1, 3.0))
def test_exact_sums_never_exceed_the_totals(
    tmp_path_factory: pytest.TempPathFactory, shares: list[tuple[float, float]], total: float
) -> None:
    made = DataLedger.create(tmp_path_factory.mktemp("ledger") / "x", total, 1e-6)
    taken, wholes = [Fraction(), Fraction()], [Fraction(repr(total)), Fraction("1e-6")]
    for share in shares:
        wanted = [a + Fraction(repr(b)) for a, b in zip(taken, share, strict=True)]
        before = made.path.read_bytes()
        try:
            made.take(*share, {})
        except BudgetExceeded:
            assert wanted[0] > wholes[0] or wanted[1] > wholes[1]
            assert made.path.read_bytes() == before
        else:
            taken = wanted
            assert wanted[0] <= wholes[0] and wanted[1] <= wholes[1]
    for exact, spent, left, whole in zip(taken, made.spent, made.left, wholes, strict=True):
        assert exact <= Fraction(repr(spent)) <= whole
        assert Fraction(repr(left)) + exact <= whole


def test_what_is_left_can_be_taken_and_nothing_after_it(tmp_path: Path) -> None:
    made = DataLedger.create(tmp_path / "x", 0.3, 0.5)
    made.take(0.1, 0.1, {})
    made.take(0.1 + 1e-16, 0.1, {})
    with pytest.raises(BudgetExceeded, match=r"only epsilon 0\.0999999"):
        made.take(0.1, 0.1, {})
    made.take(made.left[0], 0.1, {})
    with pytest.raises(BudgetExceeded):
        made.take(1e-15, 0.1, {})


def test_ten_entries_of_a_tenth_fit_and_messages_have_clean_decimals(tmp_path: Path) -> None:
    """As decimal numbers; the tenth double 0.1 would exceed the double 1 by 5.6e-17."""
    made = DataLedger.create(tmp_path / "x", 1.0, 1e-6)
    for _ in range(8):
        made.take(0.1, 1e-7, {})
    assert made.left == (0.2, 2e-7) and made.spent == (0.8, 8e-7)
    with pytest.raises(BudgetExceeded, match=r"only epsilon 0\.2, delta 2e-07 left of the data set's total$"):
        made.take(0.3, 1e-7, {})
    made.take(0.1, 1e-7, {})
    made.take(0.1, 1e-7, {})
    assert DataLedger.open(made.path).left == (0.0, 0.0)
    with pytest.raises(BudgetExceeded):
        made.take(5e-324, 5e-324, {})


@given(st.floats(5e-324, 1e300))
def test_a_run_keeps_to_the_largest_double_that_is_not_above_the_text(number: float) -> None:
    """So what is (b, δ)-DP for the double b is so for the decimal ε that counts in the ledger."""
    text, below = Fraction(repr(number)), not_above_text(number)
    assert Fraction(below) <= text < Fraction(math.nextafter(below, math.inf)) or below == number
    assert Fraction(not_above_text(0.1)) < Fraction("0.1") < Fraction(0.1)


def test_a_delta_that_is_spent_before_epsilon_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The default of a release is 0.1/n, for a thousand rows half of this total."""
    made = DataLedger.create(tmp_path / "x", 10.0, 2e-4)
    made.take(1.0, 2e-5, {})
    assert not caplog.records  # the same share of both
    made.take(1.0, 1e-4, {})
    (warned,) = caplog.records
    assert "delta 0.0001 can be taken 1 times from what is left, epsilon 1.0 9 times" in warned.message
    assert "with delta 2e-05 both last" in warned.message
    with pytest.raises(
        BudgetExceeded, match=r"left of the data set's total; a delta of at most 8e-05 would fit"
    ):
        made.take(1.0, 1e-4, {})
    with pytest.raises(BudgetExceeded, match="total$"):  # no delta would help
        made.take(9.0, 1e-4, {})


ODD = (10**400, 10**5000, True, None, "1", [], 1j, -1, False, math.nan, math.inf, {})


@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_an_odd_number_is_an_error_of_one_line_everywhere(ledger: DataLedger, odd: Any) -> None:
    before = ledger.path.read_bytes()
    for share in ((odd, 1e-8), (0.1, odd)):
        with pytest.raises(DpmcError, match="epsilon|delta"):
            ledger.take(*share, {})
        with pytest.raises(DpmcError, match="epsilon|delta"):
            DataLedger.create(ledger.path.with_name("new"), *share)
    assert ledger.path.read_bytes() == before
    with suppress(TypeError, ValueError):  # of `json`, which has no such number
        for line, key in [
            (0, "epsilon"),
            (0, "delta"),
            (3, "epsilon"),
            (3, "delta"),
            (3, "number"),
            (3, "id"),
        ]:
            text = lines(ledger)
            record = {k: v for k, v in json.loads(text[line]).items() if k != "hash"} | {key: odd}
            rewrite(ledger, [*text[:line], data_ledger._line(data_ledger._sealed(record)), *text[line + 1 :]])
            with pytest.raises(DpmcError, match=f"line {line + 1}: "):
                DataLedger.open(ledger.path)
            ledger.path.write_bytes(before)


def test_whole_numbers_in_place_of_floats_are_not_what_dpmc_writes(ledger: DataLedger) -> None:
    text = lines(ledger)
    record = {k: v for k, v in json.loads(text[1]).items() if k != "hash"} | {"epsilon": 1}
    rewrite(ledger, [text[0], data_ledger._line(data_ledger._sealed(record))])
    with pytest.raises(DpmcError, match="line 2: epsilon: 1 is not what dpmc writes"):
        DataLedger.open(ledger.path)


@pytest.mark.parametrize(
    "share", [(0.0, 0.1), (float("inf"), 0.1), (float("nan"), 0.1), (1.0, -0.1), (1.0, 1.0)]
)
def test_a_wrong_share_is_refused(ledger: DataLedger, share: tuple[float, float]) -> None:
    before = ledger.path.read_bytes()
    with pytest.raises(DpmcError, match="epsilon|delta"):
        ledger.take(*share, {})
    with pytest.raises(DpmcError, match="epsilon|delta"):
        DataLedger.create(ledger.path.with_name("other"), *share)
    assert ledger.path.read_bytes() == before


def test_a_fact_that_json_cannot_hold_is_refused_before_anything_is_written(ledger: DataLedger) -> None:
    before = ledger.path.read_bytes()
    around: list[Any] = []
    around.append(around)
    for fact in (float("nan"), object(), {1, 2}, {(1, 2): 3}, around):
        with pytest.raises(DpmcError, match=r"^about: .*: must be facts as JSON has them \(.*\)$"):
            ledger.take(0.1, 1e-8, {"fact": fact})
    assert ledger.path.read_bytes() == before


# -- processes --------------------------------------------------------------------------------------------


def take_many(path: Path, times: int, start: object) -> None:
    made = DataLedger.open(path)
    start.wait()  # type: ignore[attr-defined]
    for _ in range(times):
        try:
            made.take(1.0, 1e-9, {})
        except BudgetExceeded:
            os._exit(7)


def test_two_processes_at_once_take_no_more_than_the_total(tmp_path: Path) -> None:
    made = DataLedger.create(tmp_path / "x", 60.5, 1e-6)
    fork = multiprocessing.get_context("fork")
    barrier = fork.Barrier(2)
    workers = [fork.Process(target=take_many, args=(made.path, 40, barrier)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    after = DataLedger.open(made.path)
    assert len(after.entries) == 60 and after.left[0] == 0.5
    assert sorted(worker.exitcode for worker in workers)[-1] == 7


def test_fifty_kills_lose_nothing_that_was_taken(tmp_path: Path) -> None:
    """At most one entry more than was returned: the one under way. An incomplete line is overwritten."""
    command = [sys.executable, str(KILLS), str(tmp_path), "50", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    kills = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(kills) == 50 and all(kill["kept"] for kill in kills)
    assert all(kill["returned"] <= kill["new"] <= kill["returned"] + 1 for kill in kills)
    one_more = {"all but the line break", "before fsync", "after fsync"}
    for kill in kills:
        if kill["moment"] != "random":
            assert kill["returned"] == 2
            assert kill["new"] == 2 + (kill["moment"] in one_more), kill
            assert kill["torn"] == (kill["moment"] in ("one byte written", "half written")), kill
    assert max(kill["returned"] for kill in kills) > 5  # some were killed amid their entries
    made = DataLedger.open(tmp_path / "killed.ledger")
    made.take(0.1, 1e-8, {})
    made.verify()
    assert made.path.read_bytes().endswith(b"}\n")


@pytest.mark.parametrize("part", [1, 40, 200, -2])
def test_any_part_of_a_last_line_is_left_out_and_overwritten(ledger: DataLedger, part: int) -> None:
    whole = ledger.path.read_bytes()
    *first, last = whole.splitlines(keepends=True)
    ledger.path.write_bytes(b"".join(first) + last[:part])
    short = DataLedger.open(ledger.path)
    assert short.torn and len(short.entries) == 2 and short.spent[0] == 1.5
    short.take(0.125, 1e-7, {})
    assert DataLedger.open(ledger.path).spent[0] == 1.625
    with pytest.raises(DpmcError, match="older copy"):  # whoever saw the entry returned, notices
        ledger.take(0.1, 1e-8, {})


def test_a_last_line_without_line_break_counts(ledger: DataLedger) -> None:
    ledger.path.write_bytes(ledger.path.read_bytes()[:-1])
    again = DataLedger.open(ledger.path)
    assert not again.torn and again.entries == ledger.entries
    again.take(0.125, 1e-7, {})
    assert DataLedger.open(ledger.path).entries == again.entries and len(lines(ledger)) == 5


# -- what is wrong with a file ----------------------------------------------------------------------------


def fields() -> list[tuple[int, str]]:
    return [(0, key) for key in sorted(data_ledger.HEADER)] + [
        (line, key) for line in (1, 3) for key in sorted(data_ledger.ENTRY)
    ]


@pytest.mark.parametrize(("line", "key"), fields())
def test_a_changed_field_is_found(ledger: DataLedger, line: int, key: str) -> None:
    """In its own line; and with a new hash in the next one, or against an earlier reading."""
    text = lines(ledger)
    record = json.loads(text[line])
    value = record[key]
    record[key] = value / 2 if isinstance(value, float) else value + 1 if isinstance(value, int) else "a" * 64
    changed = [*text[:line], json.dumps(record, sort_keys=True).encode(), *text[line + 1 :]]
    rewrite(ledger, changed)
    with pytest.raises(DpmcError, match=f"line {line + 1}: does not fit its hash"):
        DataLedger.open(ledger.path)
    del record["hash"]
    resealed = data_ledger._line(data_ledger._sealed(record))
    if resealed == text[line]:  # the hash alone was changed
        assert key == "hash"
        return
    rewrite(ledger, [*text[:line], resealed, *text[line + 1 :]])
    with pytest.raises(DpmcError):
        ledger.verify()
    with pytest.raises(DpmcError):
        ledger.take(0.1, 1e-8, {})


@given(data=st.data())
def test_a_changed_byte_is_found(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    made = DataLedger.create(tmp_path_factory.mktemp("ledger") / "x", 3.0, 1e-6, "ö")
    made.take(1.0, 1e-7, {"method": "dp-penalty"})
    made.take(1.0, 1e-7, {})
    content = bytearray(made.path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] = data.draw(st.integers(0, 255).filter(lambda byte: byte != content[place]))
    made.path.write_bytes(content)
    if place == len(content) - 1:  # the last line break
        assert DataLedger.open(made.path).torn
    else:
        with pytest.raises(DpmcError, match="line"):
            DataLedger.open(made.path)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: [text[0], text[2], text[3]],
        lambda text: [text[0], text[1], text[3], text[2]],
        lambda text: [*text, text[3]],
        lambda text: [*text[:2], b"", *text[2:]],
        lambda text: [*text, b"{}"],
        lambda text: [*text, b"[" * 5000],
        lambda text: text[1:],
        lambda text: [b'{"dpmc": 1}', *text],
    ],
)
def test_lines_that_do_not_follow_are_found(ledger: DataLedger, change: object) -> None:
    rewrite(ledger, change(lines(ledger)))  # type: ignore[operator]
    with pytest.raises(DpmcError, match="line [1-5]: "):
        DataLedger.open(ledger.path)


def test_sums_beyond_the_total_are_found(ledger: DataLedger) -> None:
    last = {**ledger.entries[-1], "epsilon": 2.5}
    del last["hash"]
    rewrite(ledger, [*lines(ledger)[:-1], data_ledger._line(data_ledger._sealed(last))])
    with pytest.raises(DpmcError, match="people.ledger: its entries exceed its totals"):
        DataLedger.open(ledger.path)


def test_a_restored_backup_is_found_against_a_release(ledger: DataLedger) -> None:
    shutil.copy(ledger.path, ledger.path.with_name("backup"))
    released = ledger.take(0.5, 1e-7, {})
    ledger.verify(released)
    shutil.copy(ledger.path.with_name("backup"), ledger.path)
    restored = DataLedger.open(ledger.path)
    restored.verify()  # by itself it is a good ledger
    with pytest.raises(DpmcError, match="not in this ledger, which has 3: it is an older copy"):
        restored.verify(released)
    restored.take(0.5, 1e-7, {})  # its number is given again, and it is still another entry
    with pytest.raises(DpmcError, match="not in this ledger, which has 4"):
        restored.verify(released)
    other = DataLedger.create(ledger.path.with_name("other"), 3.0, 1e-6)
    with pytest.raises(DpmcError, match="belongs to another ledger"):
        other.verify(released)
    with pytest.raises(DpmcError, match="is not the ledger that was opened, or an older copy"):
        ledger.take(0.1, 1e-8, {})


def test_places_that_hold_no_ledger(tmp_path: Path, ledger: DataLedger) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "begun").write_bytes(ledger.path.read_bytes()[:100])
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name, words in {
        "absent": "no such ledger; dpmc ledger init creates one",
        "link": "no such ledger",
        ".": "is not a regular file",
        "pipe": "is not a regular file",
        "empty": "has no complete first line",
        "begun": "has no complete first line",
    }.items():
        with pytest.raises(DpmcError, match=words):
            DataLedger.open(tmp_path / name)
    for name in ("people.ledger", "link", "pipe", "empty"):
        with pytest.raises(DpmcError, match="exists; a ledger is never replaced"):
            DataLedger.create(tmp_path / name, 1.0, 1e-6)
    with pytest.raises(DpmcError, match="no/x: cannot be written"):
        DataLedger.create(tmp_path / "no/x", 1.0, 1e-6)


def test_a_link_is_another_name_of_the_ledger(tmp_path: Path, ledger: DataLedger) -> None:
    (tmp_path / "link").symlink_to(ledger.path)
    DataLedger.open(tmp_path / "link").take(0.5, 1e-7, {})
    assert (tmp_path / "link").is_symlink() and len(DataLedger.open(ledger.path).entries) == 4


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_ledger_that_may_not_be_written(ledger: DataLedger) -> None:
    ledger.path.chmod(0o444)
    DataLedger.open(ledger.path).verify()
    with pytest.raises(DpmcError, match=r"cannot be written \(Permission denied\)"):
        ledger.take(0.1, 1e-8, {})


@pytest.mark.parametrize("more", [0, 100])
def test_a_full_disk_is_one_error_and_no_entry(ledger: DataLedger, more: int) -> None:
    """By a limit on the size of files, after `more` bytes of the line."""
    before = ledger.path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + more, hard))
    try:
        with pytest.raises(DpmcError, match=r"people.ledger: cannot be written \("):
            ledger.take(0.1, 1e-8, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert len(ledger.path.read_bytes()) == len(before) + more
    assert DataLedger.open(ledger.path).entries == ledger.entries
    ledger.take(0.1, 1e-8, {})
    ledger.verify()


def test_a_failing_fsync_or_lock_is_an_error(ledger: DataLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fails)
        with pytest.raises(DpmcError, match=r"cannot be written \(Input/output error\)"):
            ledger.take(0.5, 1e-8, {})
    assert DataLedger.open(ledger.path).spent[0] == 2.25  # written, so spent
    with monkeypatch.context() as patched:
        patched.setattr(data_ledger.files, "lock", fails)
        DataLedger.open(ledger.path)
        with pytest.raises(DpmcError, match=r"cannot be locked \(Input/output error\)"):
            ledger.take(0.5, 1e-8, {})


def test_a_ledger_replaced_while_one_waits_for_it_is_noticed(
    ledger: DataLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks = data_ledger.files.lock

    def replaced(file: object, waiting: str) -> None:
        locks(file, waiting)  # type: ignore[arg-type]
        shutil.copy(ledger.path, ledger.path.with_name("copy"))
        os.replace(ledger.path.with_name("copy"), ledger.path)

    monkeypatch.setattr(data_ledger.files, "lock", replaced)
    with pytest.raises(DpmcError, match="was replaced or removed meanwhile"):
        ledger.take(0.1, 1e-8, {})
