"""Commands about releases: the ledger of a data set, and the check of a file before it is published."""

import argparse
import os
from pathlib import Path

from dpmc.common.errors import DpmcError
from dpmc.common.values import shown
from dpmc.privacy.data_ledger import DataLedger
from dpmc.releases import files as release_files

LONGEST_ABOUT = 200  #: characters of what is taken for


def ledger(options: argparse.Namespace) -> None:
    """Create, show or verify the ledger of a data set, or take from it for another library."""
    of_actions = {"init": {"epsilon", "delta", "name"}, "show": set(), "verify": {"against"}}
    of_actions["take"] = {"epsilon", "delta", "about"}
    given = {name: getattr(options, name) for name in sorted(set().union(*of_actions.values()))}
    of_action = of_actions[options.action]
    for name, value in given.items():
        if value is not None and name not in of_action:
            raise DpmcError(f"--{name}: not an option of dpmc ledger {options.action}")
    {"init": _init, "show": _show, "take": _take, "verify": _verify}[options.action](options)


def _init(options: argparse.Namespace) -> None:
    for name in ("epsilon", "delta"):
        if getattr(options, name) is None:
            raise DpmcError(f"--{name}: needed, the total that all releases of the data set may spend")
    name = options.file.stem if options.name is None else options.name
    made = DataLedger.create(options.file, options.epsilon, options.delta, name)
    if not options.quiet:
        print(f"{options.file}: ledger {made.header['id']}, epsilon {options.epsilon}, delta {options.delta}")


def _take(options: argparse.Namespace) -> None:
    """Take from the ledger what a release of another library will spend on the same rows."""
    for name in ("epsilon", "delta", "about"):
        if getattr(options, name) is None:
            raise DpmcError(f"--{name}: needed, of what is taken")
    about = " ".join(options.about.split())
    if not about or not about.isprintable() or len(about) > LONGEST_ABOUT:
        raise DpmcError(
            f"--about: {shown(options.about)} must say in at most {LONGEST_ABOUT} characters what for"
        )
    entry = DataLedger.open(options.file).take(
        options.epsilon, options.delta, {"method": "other", "about": about}
    )
    if not options.quiet:
        print(f"{options.file}: entry {entry['number']}, {entry['id']}: now make it, once")


def _show(options: argparse.Namespace) -> None:
    opened = DataLedger.open(options.file)
    header = opened.header
    print(
        f"{options.file}: {shown(header['name'])}, ledger {header['id']}, neighbours {header['neighbours']}"
    )
    for entry in opened.entries:
        about = ", ".join(
            str(entry["about"][key]) for key in ("method", "model_id", "about") if key in entry["about"]
        )
        share = f"epsilon {entry['epsilon']!r}, delta {entry['delta']!r}"
        print(f"{entry['number']:>4}  {entry['id']}  {share}" + f"  {shown(about)}" * bool(about))
    for word, (epsilon, delta) in (("total", opened.total), ("spent", opened.spent), ("left", opened.left)):
        print(f"{word:5}  epsilon {epsilon!r}, delta {delta!r}")
    print(f"head   {opened.head}")
    if opened.torn:
        print("An incomplete last line is left out: its run was stopped before it could use rows.")


def _verify(options: argparse.Namespace) -> None:
    """Verify a ledger, that it has the entries of releases, and that no entry is in two of them."""
    opened = DataLedger.open(options.file)
    holders: dict[str, Path] = {}
    for file in options.against or ():
        entry = release_files.entry_of(file)
        opened.verify(entry)
        other = holders.setdefault(entry["id"], file)
        if other.read_bytes() != file.read_bytes():
            raise DpmcError(
                f"{file}: has the entry of {other} and other content: an unfinished release was copied and "
                "finished twice, which spends its epsilon twice, or one of the two was changed"
            )
        if not options.quiet:
            print(f"{file}: entry {entry['number']} of this ledger, {entry['id']}")
    if not options.quiet:
        print(f"{options.file}: hashes and sums of {len(opened.entries)} entries are right")


def check_release(options: argparse.Namespace) -> None:
    """Print what a file contains; raise DpmcError if that is more, or less, than a release may contain."""
    tree = release_files.read(options.file)
    problems = release_files.check(tree)
    if not options.quiet:
        print(f"{options.file}: {os.path.getsize(options.file)} bytes")
        print(*release_files.contents(tree), sep="\n")
    if problems == [release_files.LAB]:
        raise DpmcError(f"{options.file}: {release_files.LAB}")
    problems = problems or release_files.hidden(options.file, tree)
    print(*(f"problem: {text}" for text in problems), sep="\n", end="\n" * bool(problems))
    if problems:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        raise DpmcError(f"{options.file}: {count}, the first: {problems[0]}")
    if not options.quiet:
        print("All of it is allowed in a release.")
