"""Files: replaced as a whole, locked, and NetCDF opened with clear errors."""

import hashlib
import os
import re
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.common.logs import LOGGER
from dpmc.common.values import MOST_PARAMETERS, shown

if TYPE_CHECKING:
    import xarray


TABLES = (".csv", ".csv.gz", ".parquet", ".xlsx")  #: ends of the names of tables of rows

LARGEST_TEXTS = 2**27  #: bytes in memory of the texts of a variable, such as names of parameters
NO_NETCDF = "cannot be written as NetCDF: its path must be UTF-8 without backslashes"
LONG_NAME = 128  #: bytes; file systems take 143 or more
TEMPORARY = re.compile(r"\.[0-9a-f]{16}\.tmp")
STALE = 86_400.0  #: seconds after which a temporary file is that of a killed process: it is written in one go


def is_table(path: Path) -> bool:
    """Return whether a file is a table of rows, by its name."""
    return path.name.lower().endswith(TABLES)


def stem(path: Path) -> str:
    """Return a file's name without its suffix; of people.csv.gz people."""
    return Path(path.stem if path.suffix.lower() == ".gz" else path.name).stem


def file_named_as(path: Path, ending: str) -> Path:
    """Return the path of a file with this further ending, of a long name with its digest in place of it."""
    name = os.fsencode(path.name)
    short = path.name if len(name) <= LONG_NAME else hashlib.sha256(name).hexdigest()[:32]
    return path.with_name(f"{short}{ending}")


def lock_of(path: Path) -> Path:
    """Return the path of the lock of a file, beside it; raise DpmcError for a name that no file can have."""
    try:
        path.exists()
    except OSError as error:
        raise unwritten(path, error) from None
    return path.with_name(f".{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:16]}.lock")


def _temporary(path: Path) -> Path:
    """Return a new name beside a file, in its folder: a rename replaces a file at once only there."""
    return path.with_name(f".{secrets.token_hex(8)}.tmp")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary name beside `path` and rename that file to `path` at the end, or remove it on error.

    Of several writers the last one's file stays. What a killed process left is removed by a later call, after
    `STALE` seconds. Missing folders are made. Raises DpmcError if `path` is no regular file or cannot be
    written; an old file stays as it was. An OSError that names other files is raised as it is.
    """
    temporary = _temporary(path)
    try:
        is_other = path.exists() and not path.is_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        for other in path.parent.glob(".*.tmp"):
            with suppress(OSError):  # another process may remove it at the same time
                if TEMPORARY.fullmatch(other.name) and time.time() - other.stat().st_mtime > STALE:
                    other.unlink()
    except OSError as error:
        raise unwritten(path, error) from error
    if is_other:
        raise DpmcError(f"{path}: is a folder or a device, must be a file")
    try:
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        names = {os.path.abspath(name) for name in (error.filename, error.filename2) if name is not None}
        if names and os.path.abspath(temporary) not in names:  # of another file
            raise
        raise unwritten(path, error) from error
    finally:
        with suppress(OSError):  # its folder may be gone, too
            temporary.unlink(missing_ok=True)


def given_path(value: object, where: str) -> Path:
    """Return the path of a file that a user named, ~ expanded; raise DpmcError if it names none."""
    try:
        path = Path(os.path.expanduser(value))  # type: ignore[call-overload]
        if path.name and "\0" not in str(path):
            return path
    except TypeError:
        pass
    raise DpmcError(f"{where}: {shown(value)} must be the path of a file")


def require_writable(path: Path) -> None:
    """Raise DpmcError for a file that cannot be written, or whose name the NetCDF library does not take.

    A file beside it is created and removed: one of its own name would stay if the process is killed.
    """
    _require_netcdf_name(path)
    temporary = _temporary(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "xb"):
            temporary.unlink()
    except OSError as error:
        raise unwritten(path, error) from None


def _require_netcdf_name(path: Path) -> None:
    """Raise DpmcError for a path that is not UTF-8, or has a backslash, which the library takes for a /."""
    try:
        is_taken = b"\\" not in path.absolute().as_posix().encode()
    except UnicodeEncodeError:
        is_taken = False
    if not is_taken:
        raise DpmcError(f"{path}: {NO_NETCDF}")


def check_endings(paths: Iterable[Path], endings: Sequence[str], what: str) -> None:
    """Raise DpmcError for a file name that ends in none of `endings`, as those of `what` do."""
    for path in paths:
        if path.suffix.lower() not in endings:
            raise DpmcError(f"{path}: a file of {what} must end in {' or '.join(endings)}")


def unwritten(path: Path, error: OSError) -> DpmcError:
    """Return the error of a file that cannot be written, for example because the disk is full."""
    return DpmcError(f"{path}: cannot be written ({error.strerror or error})")


def write_netcdf(path: Path, content: Any, encoding: Mapping[Any, Any]) -> None:
    """Write a Dataset or DataTree of xarray as NetCDF; raise DpmcError if the file cannot be written."""
    _require_netcdf_name(path)
    with replacing(path) as temporary:
        try:
            content.to_netcdf(temporary, engine="netcdf4", encoding=encoding)
        except RuntimeError as error:  # of the NetCDF library, which has no word for a full disk
            raise DpmcError(f"{path}: cannot be written ({error}); is the disk full?") from error


def lock(file: IO[Any], waiting: str) -> None:
    """Lock an open file; log `waiting` and wait for another holder. OSError: its file system has no locks."""
    import fcntl  # POSIX only; the package can be imported elsewhere

    try:
        # First without waiting, so that a wait can be announced.
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        LOGGER.info("dpmc: %s", waiting)
        fcntl.flock(file, fcntl.LOCK_EX)


def is_at(file: IO[Any], path: Path) -> bool:
    """Return whether an open file is still the one at `path`: nobody removed or replaced it."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except OSError:
        return False


@contextmanager
def alone(path: Path, waiting: str, required: bool = True) -> Iterator[None]:
    """Lock the file at `path`, which is removed at the end; log `waiting` while another process has the lock.

    Who waited for a file that was removed locks the new one. Raises DpmcError if the file cannot be made.
    Raises OSError if the file system has no locks; without effect there if the lock is not `required`.
    """
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            opened = open(path, "w")  # noqa: SIM115 - closed below
        except OSError as error:
            raise unwritten(path, error) from error
        with opened as file:
            try:
                lock(file, waiting)
            except OSError:
                if required:
                    raise
            if not is_at(file, path):
                continue
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
        return


def sync(file: IO[Any], path: Path) -> None:
    """Wait until an open file, without a buffer of Python, and its name are on the disk; else OSError."""
    os.fsync(file.fileno())
    folder = os.open(path.resolve().parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def reading(path: str | Path) -> Iterator["xarray.DataTree"]:
    """Open a NetCDF file, values as they are; raise DpmcError if it is missing or broken."""
    import xarray

    try:
        if not Path(path).is_file():
            raise DpmcError(f"{path}: no such file")
        _require_short_texts(path)
        with xarray.open_datatree(
            path, engine="netcdf4", decode_cf=False, create_default_indexes=False
        ) as file:
            yield file
    except DpmcError:
        raise
    except (OSError, RuntimeError) as error:
        raise DpmcError(f"{path}: cannot be read as NetCDF, it may be cut off ({error})") from None
    except (KeyError, IndexError, AttributeError) as error:
        raise DpmcError(f"{path}: is not the file expected here, {error} is missing") from None
    except (TypeError, ValueError) as error:
        raise DpmcError(f"{path}: is not the file expected here ({error})") from None


def _require_short_texts(path: str | Path) -> None:
    """Raise ValueError for texts that would take more than `LARGEST_TEXTS` bytes of memory.

    An array has room for its longest text in each place. Also for entries of another type without a size.
    """
    import netCDF4

    with netCDF4.Dataset(Path(path).absolute()) as file:  # a relative c:/ is a drive for the library
        groups = [file]
        for group in groups:
            groups += group.groups.values()
            for name, variable in group.variables.items():
                if variable.dtype is not str:
                    if isinstance(variable.datatype, netCDF4.VLType):
                        raise ValueError(f"{shown(name)}: has entries of any length")
                    continue
                if variable.size > MOST_PARAMETERS:
                    raise ValueError(f"{shown(name)}: has {variable.size} texts, at most {MOST_PARAMETERS}")
                for place in np.ndindex(variable.shape):  # one by one: each may be as long as the file
                    if 4 * variable.size * len(variable[place]) > LARGEST_TEXTS:
                        raise ValueError(f"{shown(name)}: has a text of {len(variable[place])} characters")


def values_of(group: "xarray.DataTree", name: str) -> np.ndarray:
    """Return all values of a group's variable, in its shape; raise TypeError if not numbers."""
    values = np.asarray(group.variables[name].values)
    if values.dtype.kind not in "fiu":
        raise TypeError(f"{name} holds no numbers")
    return values
