"""Mutations of data files, chain files and tables of metrics."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np

from fuzz.inputs import Case
from fuzz.texts import DEEP, LONG, Change, Mutation, text

# NetCDF


@dataclass
class Group:
    """The contents of a group of a file."""

    attrs: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)


def read(path: Path) -> dict[str, Group]:
    """The groups of a file by name; the root's is ""."""
    with netCDF4.Dataset(path) as file:
        file.set_auto_maskandscale(False)
        return {
            name: Group({key: at.getncattr(key) for key in at.ncattrs()}, {key: v[:] for key,
             v in at.variables.items()})
            for name, at in {"": file, **file.groups}.items()
        }  # fmt: skip


def write(path: Path, groups: dict[str, Group]) -> None:
    """Write groups anew, every array with dimensions of its own."""
    with netCDF4.Dataset(path, "w") as file:
        for name, group in groups.items():
            at = file.createGroup(name) if name else file
            at.setncatts(group.attrs)
            for key, array in group.arrays.items():
                array = np.asarray(array)
                dims = [key, *(f"{key}_{axis}" for axis in range(1, array.ndim))][: array.ndim]
                for dim, size in zip(dims, array.shape, strict=True):
                    at.createDimension(dim, size)
                kind = str if array.dtype.kind in "UO" else array.dtype
                order: Any = "big" if array.dtype.byteorder == ">" else "native"
                at.createVariable(key, kind, dims, endian=order)[...] = (
                    array.astype(object) if kind is str else array
                )


def file_of(case: Case, rng: random.Random) -> str:
    """The file that a mutation is for: the problem, or a chain where the command reads chains."""
    return "chain-0.nc" if "--chains" in case.argv else "own.nc"


def edit(change: Callable[[dict[str, Group], random.Random], Any]) -> Change:
    """Edit the groups of the command's file; `change` returns the text to report."""

    def mutate(case: Case, rng: random.Random) -> None:
        name = file_of(case, rng)
        groups = read(case.path(name))
        case.told.append(f"{name}: {change(groups, rng)}")
        write(case.path(name), groups)

    return mutate


def attribute(name: str, *values: Any) -> Change:
    """Give an attribute one of the values."""

    def change(groups: dict[str, Group], rng: random.Random) -> str:
        groups[""].attrs[name] = rng.choice(values)
        return f"{name} = {groups[''].attrs[name]!r}"

    return edit(change)


def no_attribute(*names: str) -> Change:
    """Take one of the attributes away."""

    def change(groups: dict[str, Group], rng: random.Random) -> str:
        name = rng.choice(names)
        del groups[""].attrs[name]
        return f"no {name}"

    return edit(change)


def no_array(*names: str) -> Change:
    """Take one of the variables away; of a group as group/variable."""

    def change(groups: dict[str, Group], rng: random.Random) -> str:
        group, _, name = rng.choice(names).rpartition("/")
        del groups[group].arrays[name]
        return f"no {group}/{name}"

    return edit(change)


def array(place: str, *changes: Callable[[np.ndarray], np.ndarray]) -> Change:
    """Change a variable in one of the ways."""

    def change(groups: dict[str, Group], rng: random.Random) -> str:
        group, _, name = place.rpartition("/")
        arrays = groups[group].arrays
        arrays[name] = rng.choice(changes)(arrays[name].copy())
        return f"{place} = {arrays[name].dtype} {arrays[name].shape} {arrays[name].ravel()[:4]}"

    return edit(change)


def one(value: float) -> Callable[[np.ndarray], np.ndarray]:
    """Put a value somewhere in the middle of an array."""

    def change(values: np.ndarray) -> np.ndarray:
        values = values.astype(float)
        values.reshape(-1)[values.size // 2] = value
        return values

    return change


def as_text(values: np.ndarray) -> np.ndarray:
    """Text of the same shape."""
    return np.full(values.shape, "a", object)


def bytes_of(change: Callable[[bytes, random.Random], bytes]) -> Change:
    """Change the bytes of the command's file."""

    def mutate(case: Case, rng: random.Random) -> None:
        path = case.path(file_of(case, rng))
        path.write_bytes(change(path.read_bytes(), rng))

    return mutate


def damaged(case: Case, rng: random.Random) -> None:
    """Put other bytes at a few places of the command's file."""
    path = case.path(file_of(case, rng))
    content = bytearray(path.read_bytes())
    for _ in range(rng.choice([1, 3, 30])):
        place, byte = rng.randrange(len(content)), rng.randrange(256)
        content[place] = byte
        case.told.append(f"{path.name}: byte {place} = {byte}")
    path.write_bytes(content)


def foreign(content: bytes, rng: random.Random) -> bytes:
    """Write a file that is not NetCDF."""
    return rng.choice(
        [b"", b"CDF", b"\x89HDF\r\n\x1a\n", b"\x89PNG\r\n", b"1,2\n3,4\n", b"{}", content[512:], b"\0" * 4096]
    )


NC = [
    Mutation("written by another program", "sample evaluate trace", edit(lambda groups, rng: "as it was"),
             True),
    Mutation("further attribute", "sample evaluate trace", attribute("history", "made by hand", 5, [1.0,
             2.0]), True,
             mixes=True),
    Mutation("damaged bytes", "sample evaluate trace", damaged, None),
    Mutation("damaged bytes, more often", "sample evaluate trace", damaged, None),
    Mutation("cut off", "sample evaluate trace", bytes_of(lambda b, rng: b[: rng.randrange(len(b) - 1)]),
             word=".nc"),
    Mutation("no NetCDF", "sample evaluate trace", bytes_of(foreign), word=".nc"),
    Mutation("NetCDF of something else", "sample evaluate trace", edit(lambda groups, rng: groups.clear()),
             word=".nc"),
]  # fmt: skip

P = "sample"
PROBLEM = ("rows", "starts", "true_theta", "reference", "baselines", "posterior_mean", "posterior_covariance")
DATA_NC = [
    Mutation("rows of 32 bits", P, array("rows", lambda a: a.astype("f4"), lambda a: a.astype(">f8")), True,
             mixes=True),
    Mutation("rows as whole numbers", P, array("rows", lambda a: a.round().astype("i4"), lambda a: a.round(
             ).astype("i8")),
             True),
    Mutation("temperature of another type", P, attribute("temperature", 1, np.float32(1), np.int16(1)), True,
             mixes=True),
    Mutation("further variable", P, edit(lambda groups, rng: groups[""].arrays.update(weight=np.ones(3))),
             True),
    Mutation("attribute missing", P, no_attribute("label", "model", "dataset", "temperature"),
             word="missing"),
    Mutation("variable missing", P, no_array(*PROBLEM), word="missing"),
    Mutation("temperature that is none", P, attribute("temperature", -1.0, 0.0, np.nan, np.inf, "x", "",
             [1.0, 2.0], -1e-300),
             word="temperature"),
    Mutation("label of the wrong kind", P, attribute("label", 5, "", "moon", [1, 2]), word="own.nc"),
    Mutation("model of the wrong kind", P, attribute("model", 5, "", "moon", [1.0, 2.0], "nope:Normal",
             "own:"), word="model"),
    Mutation("data set of the wrong kind", P, attribute("dataset", 5, [1.0, 2.0], np.nan), word="dataset"),
    Mutation("of another version", P, attribute("schema", 99, "x", -1, np.nan), None),
    Mutation("rows that are not finite", P, array("rows", one(np.nan), one(np.inf), one(-np.inf)),
             word="rows"),
    Mutation("rows too large", P, array("rows", one(1e151), one(-1e300)), word="rows"),
    Mutation("rows of the wrong shape", P, array("rows", lambda a: a[:, 0], lambda a: a[None],
             lambda a: a[:0],
             lambda a: a[:, :0], lambda a: a[:, :1], lambda a: np.tile(a, 2), lambda a: a[0, 0]),
             word="rows"),
    Mutation("rows of the wrong kind", P, array("rows", as_text, lambda a: a.astype("U")), word="rows"),
    Mutation("fewer rows", P, array("rows", lambda a: a[:1], lambda a: a[:19]), None),
    Mutation("starts of the wrong shape", P, array("starts", lambda a: a[:, 0], lambda a: a[:, :1],
             lambda a: a[:1],
             lambda a: a[:0], lambda a: np.tile(a, 2)), word="start"),
    Mutation("starts that are not finite", P, array("starts", one(np.nan), one(np.inf)), word="starts"),
    Mutation("starts of the wrong kind", P, array("starts", as_text), word="starts"),
    Mutation("true_theta of the wrong shape", P, array("true_theta", lambda a: a[:1], lambda a: a[None],
             lambda a: a[0],
             lambda a: np.tile(a, 2)), word="true_theta"),
    Mutation("true_theta of the wrong kind", P, array("true_theta", as_text), word="true_theta"),
    Mutation("posterior of the wrong shape", P, array("posterior_mean", lambda a: a[:1], lambda a: a[None],
             as_text),
             word="posterior_mean"),
    Mutation("covariance of the wrong shape", P, array("posterior_covariance", lambda a: a[:1],
             lambda a: a[0], as_text),
             word="posterior_covariance"),
    Mutation("reference of the wrong shape", P, array("reference", lambda a: np.zeros((3, 1)),
             lambda a: np.zeros(2),
             lambda a: np.full((2, 2), np.nan), as_text), None),
    Mutation("baselines of the wrong shape", P, array("baselines", lambda a: np.zeros((2, 3, 1)),
             lambda a: np.zeros(2)),
             word="baselines"),
    Mutation("histogram of the wrong shape", P, edit(lambda groups, rng: groups[""].arrays.update(
        histogram_edges=np.zeros((2, 4)), histogram_counts=np.zeros(rng.choice([(2, 2), (3,), (4, 4)])))),
             word="histogram"),
]  # fmt: skip

# Rows as CSV

R = "rows.csv"
C = "mine rows"
Rng = random.Random


def cell(*values: str) -> Change:
    """Put one of the texts in the place of a number, not in the first line."""

    def edit(content: str, rng: Rng) -> str:
        lines = [line.split(",") for line in content.splitlines()]
        lines[rng.randrange(1, len(lines))][rng.randrange(2)] = rng.choice(values)
        return "\n".join(map(",".join, lines)) + "\n"

    return text(R, edit)


def first(*lines: str) -> Change:
    """Put one of the lines in the place of the first."""
    return text(R, lambda t, rng: rng.choice(lines) + "\n" + t.split("\n", 1)[1])


def renamed(case: Case, rng: Rng) -> None:
    """Give own rows the name of a data set of dpmc."""
    name = rng.choice(["published.csv", "tuning.csv", "fresh-0.csv", "fresh-12.csv"])
    case.path(R).rename(case.path(name))
    case.option("--rows" if "--rows" in case.argv else "--data", name)


DATA_CSV = [
    Mutation("a header", C, text(R, lambda t, rng: rng.choice(["x,y", "x 1,y 1", '"x","y"', "x1,x2",
             "é,ü"]) + "\n" + t), True),
    Mutation("numbers in other words", C, cell("4", "4.", "+4", "4e0", " 4 ", "-0.0", ".5",
             "4.000000000000000000000000001"),
             True, mixes=True),
    Mutation("blank lines", C, text(R, lambda t, rng: t + rng.choice(["\n", "\n\n\n", "  \n"])),
             word="line 21"),
    Mutation("no end of the last line", C, text(R, lambda t, rng: t.rstrip("\n")), True),
    Mutation("ends of lines of Windows", C, text(R, lambda t, rng: t.replace("\n", "\r\n").encode()), True),
    Mutation("rows in another order", C, text(R, lambda t, rng: "".join(rng.sample(t.splitlines(True), 20))),
             True, mixes=True),
    Mutation("mark of byte order", C, text(R, lambda t, rng: "\ufeff" + t), None),
    Mutation("quoted numbers", C, cell('"4"', "'4'"), None),
    Mutation("numbers that only Python reads", C, cell("٣", "1_0"), None),
    Mutation("header that is a broken number", C, first("1.o,2", "1..0,2", "0,9;-2,0", "1.5,", ",2",
             "1,-2.0x", "1 0,2"),
             word="line 1"),
    Mutation("text for a number", C, cell("x", "1..0", "1,", "0x4", "1 2", "--1", "None", "1e", "true"),
             word="line"),
    Mutation("a number missing", C, cell("", " "), word="line"),
    Mutation("numbers that are not finite", C, cell("nan", "inf", "-inf", "1e999", "NA"), word=R),
    Mutation("numbers too large", C, cell("1e151", "-1e300", "1" + "0" * 200), word=R),
    Mutation("lines of different lengths", C, text(R, lambda t, rng: t + rng.choice(["1\n", "1,2,3\n",
             "1,2,\n"])), word="line 21"),
    Mutation("other columns than the model's", C, text(R, lambda t, rng: rng.choice(
        [t.replace(",", ",0,"), "".join(line.split(",")[0] + "\n" for line in t.splitlines())])),
             word="columns"),
    Mutation("other marks between", C, text(R, lambda t, rng: t.replace(",", rng.choice([";", "\t", " ",
             "|"]))), word=R),
    Mutation("no rows", C, text(R, lambda t, rng: rng.choice(["", "\n", "x,y\n", "\n\n", " "])), word=R),
    Mutation("no text", C, text(R, lambda t, rng: rng.choice([b"\xff\xfe1", b"\0\0", b"PK\3\4\x99", t.encode(
             "utf-16")])), word=R),
    Mutation("the name of a data set of dpmc", C, renamed, word="name"),
    Mutation("one huge line", C, text(R, lambda t, rng: "1," * 200_000 + "1\n"), word=R),
]  # fmt: skip

# Chain files

E = "evaluate trace"
NEEDED = ("study", "model", "method", "epsilon", "dataset", "seed", "iterations", "n", "status")
COUNTS = ("ratio_evaluations_per_iteration", "gradient_evaluations_per_iteration")


def total(group: str, name: str, *values: Any) -> Change:
    """Give an attribute of a group one of the values; ... takes it away."""

    def change(groups: dict[str, Group], rng: Rng) -> str:
        groups[group].attrs[name] = rng.choice(values)
        if groups[group].attrs[name] is ...:
            del groups[group].attrs[name]
        return f"{group}: {name} = {groups[group].attrs.get(name, 'missing')!r}"

    return edit(change)


def no_group(groups: dict[str, Group], rng: Rng) -> str:
    """Take a group away."""
    name = rng.choice(["posterior", "sample_stats", "private_diagnostics", "constant_data"])
    del groups[name]
    return f"no {name}"


def same_twice(case: Case, rng: Rng) -> None:
    """Give a chain twice."""
    case.option("--chains", "chain-0.nc", rng.choice(["chain-0.nc", "./chain-0.nc"]))


CHAINS = [
    Mutation("chains in another order", "evaluate", lambda case, rng: case.option("--chains", "chain-1.nc",
             "chain-0.nc"), True,
             mixes=True),
    Mutation("one chain", "evaluate", lambda case, rng: case.option("--chains", rng.choice(["chain-0.nc",
             "./chain-1.nc"])), True),
    Mutation("attributes of another type", E, attribute("seed", 0, np.int16(0), np.uint64(0)), True,
             mixes=True),
    Mutation("attribute missing", "evaluate", no_attribute(*NEEDED, *COUNTS), word="missing"),
    Mutation("attribute missing, for a trace", "trace", no_attribute(*NEEDED, *COUNTS), None),
    Mutation("attribute that is not needed missing", E, no_attribute("mode", "thin", "rows_per_evaluation",
             "ledger", "delta"), None),
    Mutation("model of the wrong kind", E, attribute("model", 5, "moon", "", [1.0, 2.0]), word="model"),
    Mutation("names of the wrong kind", "evaluate", attribute("method", 5, [1.0, 2.0], np.nan),
             word="method"),
    Mutation("epsilon of the wrong kind", E, attribute("epsilon", "x", "-1", "", [1.0, 2.0], np.nan),
             word="epsilon"),
    Mutation("data set of another file", E, attribute("dataset", "fresh-1", 5, "", [1.0, 2.0]), word="data"),
    Mutation("seed of the wrong kind", "evaluate", attribute("seed", "x", -1, 1.5, [0, 1], np.nan, "", LONG),
             word="seed"),
    Mutation("iterations of the wrong kind", "evaluate", attribute("iterations", "many", -1, 1.5, np.nan, [6,
             6], "", LONG, 10**12),
             word="iterations"),
    Mutation("iterations of the wrong kind, for a trace", "trace", attribute("iterations", "many", -1,
             np.nan, [6, 6], LONG, 10**12),
             word="iterations"),
    Mutation("thin of the wrong kind", E, attribute("thin", "x", 0, -1, 1.5, np.nan, [1, 1], LONG),
             word="thin"),
    Mutation("n of the wrong kind", "evaluate", attribute("n", "x", 0, -20, np.nan, [20, 20]), None),
    Mutation("status of the wrong kind", "evaluate", attribute("status", 5, "", [1.0, 2.0], "a\nb"), None),
    Mutation("evaluations of the wrong kind", "evaluate", attribute(COUNTS[0], "x", -1, np.nan, [1, 1],
             LONG), word="evaluations"),
    Mutation("ledger that is no JSON", "evaluate", attribute("ledger", "{", "", "nan nan", "\0", DEEP),
             word="ledger"),
    Mutation("ledger of the wrong kind", "evaluate", attribute("ledger", "5", "[]", '{"budget": 1}', '"x"',
             '{"delta": null}',
             '{"budget": {"delta": 0.1}, "epsilon_spent": 1}', 5,
             '{"budget": {}, "epsilon_spent": "x", "performed": 5, "forfeited": []}'), word="ledger"),
    Mutation("variable missing", E, no_array("posterior/theta", "constant_data/theta_0"), word="missing"),
    Mutation("group missing", E, edit(no_group), word="missing"),
    Mutation("draws of the wrong shape", E, array("posterior/theta", lambda a: a[0], lambda a: a[0, 0],
             lambda a: a[None],
             lambda a: a[:, :, :1], lambda a: a[:0], lambda a: np.tile(a, (1, 1, 2)), lambda a: a[:, :, :0]),
             word="theta"),
    Mutation("draws lost", E, array("posterior/theta", lambda a: a[:, :3], lambda a: a[:, :0],
             lambda a: np.tile(a, (1, 5, 1))), None),
    Mutation("draws of the wrong kind", E, array("posterior/theta", as_text), word="theta"),
    Mutation("draws that are not finite", E, array("posterior/theta", one(np.nan), one(np.inf), one(1e300)),
             None),
    Mutation("draws of 32 bits", E, array("posterior/theta", lambda a: a.astype("f4"), lambda a: a.astype(
             ">f8")), True),
    Mutation("start of the wrong shape", "trace", array("constant_data/theta_0", lambda a: a[:, :1],
             lambda a: a[0], as_text), None),
    Mutation("totals missing", E, total("sample_stats", "accepted_total", ...), word="missing"),
    Mutation("totals of the wrong kind", "evaluate", total("sample_stats", "accepted_total", "x", np.nan, -1,
             1e300), None),
    Mutation("clipped rows of the wrong kind", "evaluate", total("private_diagnostics",
             "ratio_clipped_total", "x", ..., np.nan),
             word="ratio_clipped"),
    Mutation("a chain twice", "evaluate", same_twice, word="seed"),
]  # fmt: skip

# Tables

T = "metrics.csv"


def value(column: str, metric: str, *values: str) -> Change:
    """Put one of the texts into a column of a row with this metric; "" stands for any."""

    def edit(content: str, rng: Rng) -> str:
        head, *lines = content.splitlines()
        place = head.split(",").index(column)
        which = rng.choice([i for i, line in enumerate(lines) if not metric or line.split(",")[5] == metric])
        words = lines[which].split(",")
        words[place] = rng.choice(values)
        lines[which] = ",".join(words)
        return "\n".join([head, *lines]) + "\n"

    return text(T, edit)


def columns(content: str, rng: Rng, more: bool = False) -> str:
    """The table with its columns in another order, or one more."""
    table = [line.split(",") for line in content.splitlines()]
    order = rng.sample(range(7), 7)
    extra = [["extra"], *[["5"]] * (len(table) - 1)] if more else [[]] * len(table)
    return "".join(
        ",".join([line[i] for i in order] + e) + "\n" for line, e in zip(table, extra, strict=True)
    )


def no_column(content: str, rng: Rng) -> str:
    """The table without one of its columns, or with its name written otherwise."""
    head, body = content.split("\n", 1)
    name = rng.choice(head.split(","))
    return head.replace(name, rng.choice([name.upper(), f" {name}", "", f"{name}2"])) + "\n" + body


TABLES = [
    Mutation("columns in another order", "plot", text(T, columns), True),
    Mutation("a further column", "plot", text(T, lambda t, rng: columns(t, rng, True)), True),
    Mutation("rows in another order", "plot", text(T, lambda t, rng: "\n".join(
        [t.splitlines()[0], *rng.sample(t.splitlines()[1:], len(t.splitlines()) - 1)]) + "\n"), True,
             mixes=True),
    Mutation("ends of lines of Windows", "plot", text(T, lambda t, rng: t.replace("\n", "\r\n").encode()),
             True),
    Mutation("numbers in other words", "plot", value("value", "mmd", "1", "0.10", "1e-1", "2.", "+0.5"),
             True, mixes=True),
    Mutation("epsilon in other words", "plot", text(T, lambda t, rng: t.replace("penalty,1,",
             "penalty,1.0,")), True),
    Mutation("quoted cells", "plot", value("model", "mmd", '"flat-banana-2d"'), True),
    Mutation("rows of another study", "plot", text(T, lambda t,
             rng: t + "thesis,circle,dp-hmc,4,0,mmd,0.1\n"), True, mixes=True),
    Mutation("no rows", "plot", text(T, lambda t, rng: t.split("\n")[0] + "\n"), None),
    Mutation("a row twice", "plot", text(T, lambda t, rng: t + t.splitlines()[2] + "\n"), None),
    Mutation("rows of unknown names", "plot", value("method", "mmd", "nope", "", "5"), None),
    Mutation("a metric of an unknown name", "plot", value("metric", "mmd", "nope", "", "5"), None),
    Mutation("cut off", "plot", text(T, lambda t, rng: t[: rng.randrange(60, len(t))]), None),
    Mutation("a value infinite", "plot", value("value", "", "inf", "-inf", "1e999", "1e300"), None),
    Mutation("NaN", "plot", value("value", "mmd", "nan", "NaN"), word=T),
    Mutation("NaN of iterations", "plot", value("value", "iterations", "nan", "NaN"), word=T),
    Mutation("text for a number", "plot", value("value", "mmd", "x", "0.1.2", "NA", "none", "0.1 nats",
             "1e"), word=T),
    Mutation("text for iterations", "plot", value("value", "iterations", "x", "many"), word=T),
    Mutation("no value", "plot", value("value", "mmd", "", " "), word=T),
    Mutation("epsilon that is none", "plot", value("epsilon", "mmd", "x", "-1", "0", "nan", "٣"),
             word="epsilon"),
    Mutation("column missing", "plot", text(T, no_column), word="column"),
    Mutation("lines too long", "plot", text(T, lambda t,
             rng: t + "tiny,flat-banana-2d,dp-penalty,1,9,mmd,0.1,5\n"), word=T),
    Mutation("line cut off", "plot", text(T, lambda t, rng: t + "tiny,flat-banana-2d,dp-penalty,1,9,mmd\n"),
             word=T),
    Mutation("no table", "plot", text(T, lambda t, rng: rng.choice(["", "\n", "a", "{}", '"',
             "a,b\n1,2\n"])), word=T),
    Mutation("no text", "plot", text(T, lambda t, rng: rng.choice([b"\xff\xfe", b"\0" * 99,
             b"%PDF-1.4\n\x80", t.encode("utf-16")])),
             word=T),
    Mutation("broken quotes", "plot", text(T, lambda t, rng: t.replace("mmd", '"mmd', 1)), word=T),
]  # fmt: skip
