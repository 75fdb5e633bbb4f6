"""Checks of outputs: never overwrite an input, another output, or a file that is not a result of dpmc.

Results of dpmc are recognised by content, separately for each command: `dpmc sample --force` overwrites only
chain files. The tests are narrow on purpose: a file with other columns or another first line belongs to the
user.

chain files, data files: NetCDF with root attributes and parts that `chain_files` and `problem` write.
tables: CSV whose first line is the header of exactly this table.
hyperparameters: YAML whose top-level keys are those of `dpmc tune`, in its order.
figures: the creator in the metadata of PNG, PDF and SVG files (`CREATOR`).
checksums of `dpmc fetch`: the names in all lines.
"""

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from dpmc.common.errors import DpmcError

CREATOR = "dpmc"  # in the metadata of every figure


class Kind(NamedTuple):
    """A kind of result."""

    name: str
    recognises: Callable[[Path], bool]  # an existing regular file


class Output(NamedTuple):
    """A file that a command will write."""

    option: str  # with its dashes
    path: Path
    kind: Kind


def check(outputs: list[Output], inputs: Iterable[tuple[str, Path | None]], force: bool) -> None:
    """Refuse outputs that would overwrite something else or cannot be written; create no file.

    `inputs`: the files that the command reads, each with its option; None if the option is not given.
    `force`: overwrite existing results of the same kind.

    Raises DpmcError naming option, file and rule.
    """
    taken = {_identity(path): option for option, path in inputs if path is not None}
    for output in outputs:
        place = _identity(output.path)
        rule = _refusal(output, force)
        if taken.get(place) == output.option:
            rule = "is named twice, every output must have a file of its own"
        elif place in taken:
            rule = f"is a file of another option too ({taken[place]}), must be one of its own"
        if rule:
            raise DpmcError(f"{output.option}: {output.path}: {rule}")
        taken[place] = output.option
    real = {Path(os.path.realpath(output.path)): output for output in outputs}
    for path, output in real.items():
        upper = next((real[folder].path for folder in path.parents if folder in real), None)
        if upper is not None:
            rule = f"cannot be beside {upper}: {upper} would be a file and a folder"
            raise DpmcError(f"{output.option}: {output.path}: {rule}")


def _refusal(output: Output, force: bool) -> str:
    """Return the rule that an output breaks, whatever the other files are; "" for none."""
    path, folder = output.path, output.path.parent
    while not os.path.lexists(folder) and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir():
        return f"cannot be made: {folder} is not a folder"
    if not os.access(folder, os.W_OK):
        return f"cannot be made: {folder} may not be written to"
    if path.is_symlink() and not path.exists():
        return "is a link to a missing file, name that file"
    if path.exists() and not path.is_file():
        return "is a folder or a device, must be a file"
    if output.kind is STATE or not path.exists():
        return ""
    if not output.kind.recognises(path):
        return f"exists and is not {output.kind.name} made by dpmc; name another file"
    return "" if force or output.kind is TIMES else "exists; --force overwrites it"


def _identity(path: Path) -> object:
    """Return a value that is equal for all names of a file, also through links."""
    if path.exists():
        about = path.stat()
        return about.st_dev, about.st_ino
    return os.path.realpath(path)


def _netcdf(name: str, attributes: set[str], part: str) -> Kind:
    """Return the kind of NetCDF files with these root attributes and this group or variable."""

    def recognises(path: Path) -> bool:
        from dpmc.common.files import reading

        try:
            with reading(path) as file:
                return part in file and attributes <= file.attrs.keys()
        except DpmcError:
            return False

    return Kind(name, recognises)


def _is_hyperparameters(path: Path) -> bool:
    keys = re.findall(rb"^([^\s:#-][^:\n]*):", path.read_bytes(), re.MULTILINE)
    begin = [b"study", b"model", b"method", b"mode", b"hyperparameters"]
    return keys[:5] == begin and not {b"tried", b"search"}.isdisjoint(keys)


def _is_figure(path: Path) -> bool:
    name = CREATOR.encode()
    content = path.read_bytes()
    marks = {
        b"\x89PNG": b"tEXtSoftware\0" + name,
        b"%PDF": b"/Creator (" + name + b")",
        b"<?xml": b"<dc:title>" + name + b"</dc:title>",
    }
    return any(content.startswith(begin) and mark in content for begin, mark in marks.items())


#: A file that its command continues; the command itself refuses a file of another kind.
STATE = Kind("state", lambda path: True)
CHAINS = _netcdf("a chain file", {"schema", "dpmc_version", "ledger", "seed"}, "posterior")
PROBLEM = _netcdf("a data file", {"schema", "label", "model", "dataset", "versions"}, "rows")
#: Of `dpmc sample --times`, or where Snakemake measured jobs before: replaced without --force.
TIMES = Kind("run times", lambda path: path.read_bytes()[:13].startswith((b"wall_seconds\t", b"s\th:m:s\t")))
HYPERPARAMETERS = Kind("a file of hyperparameters", _is_hyperparameters)
FIGURE = Kind("a figure", _is_figure)


def text_file(first: str) -> Kind:
    """Return the kind of text files with this first line: tables as CSV and Markdown."""

    def recognises(path: Path) -> bool:
        with open(path, "rb") as file:
            return file.readline(10_000).rstrip(b"\n") == first.encode()

    return Kind("a table of this kind", recognises)


def csv_table(columns: Iterable[str]) -> Kind:
    """Return the kind of CSV tables with these columns, in this order."""
    return text_file(",".join(columns))


def checksums(names: Iterable[str]) -> Kind:
    """Return the kind of lists of checksums of these files."""
    line = f"[0-9a-f]{{64}}  ({'|'.join(map(re.escape, names))})\n"

    def recognises(path: Path) -> bool:
        return re.fullmatch(f"({line})+".encode(), path.read_bytes()) is not None

    return Kind("a list of these checksums", recognises)
