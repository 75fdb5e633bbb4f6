"""Checks of outputs: never overwrite an input or another output, and an earlier file only with `--force`."""

import argparse
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from dpmc.common.errors import DpmcError

#: Files of a command, each with its option; None if the option is not given.
Files = Iterable[tuple[str, Path | None]]


def check_outputs(
    options: argparse.Namespace, inputs: Files = (), outputs: Files = (), continued: Sequence[str] = ()
) -> None:
    """Refuse outputs that would overwrite something else or cannot be written; create no file.

    `inputs`: files that the command reads; `outputs`: those that it writes, by default that of `--output`.
    `continued`: options whose files may exist without `--force`. Raises DpmcError naming option and file.
    """
    taken = {_identity(path): option for option, path in inputs if path is not None}
    for option, path in outputs or [("--output", options.output)]:
        if path is None:
            continue
        place, rule = _identity(path), _refusal(path)
        if taken.get(place) == option:
            rule = "is named twice, every output must have a file of its own"
        elif place in taken:
            rule = f"is a file of another option too ({taken[place]}), must be one of its own"
        elif not rule and path.exists() and not options.force and option not in continued:
            rule = "exists; --force overwrites it"
        if rule:
            raise DpmcError(f"{option}: {path}: {rule}")
        taken[place] = option


def _refusal(path: Path) -> str:
    """Return why a file of this name cannot be written; "" if it can."""
    folder = path.parent
    while not os.path.lexists(folder) and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir():
        return f"cannot be made: {folder} is not a folder"
    if not os.access(folder, os.W_OK):
        return f"cannot be made: {folder} may not be written to"
    if path.is_symlink() and not path.exists():
        return "is a link to a missing file, name that file"
    return "is a folder or a device, must be a file" if path.exists() and not path.is_file() else ""


def _identity(path: Path) -> object:
    """Return a value that is equal for all names of a file, also through links."""
    if path.exists():
        about = path.stat()
        return about.st_dev, about.st_ino
    return os.path.realpath(path)
