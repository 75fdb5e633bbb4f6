"""Mutations of command lines, studies, hyperparameters, models, data files, chain files and tables.

A mutation's `change(case, rng)` edits the files or the arguments of a valid input; `rng` chooses among the
values that the name covers. `valid=None` stands for what no rule decides: it may be taken or refused.
"""

import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import netCDF4
import numpy as np
import yaml

from fuzz.inputs import Case

Rng = random.Random
Change = Callable[[Case, Rng], object]
Edit = Callable[[np.ndarray], np.ndarray]  # of an array in a file


class Mutation(NamedTuple):
    """A named change of a valid input."""

    name: str
    commands: str  # of CASES to which it applies, separated by spaces
    change: Change
    valid: bool | None = False
    word: str = ""  # that the refusal has to say


NAN, INF = float("nan"), float("inf")
LONG = "1" + "0" * 22  # an integer of 23 digits
DEEP = "[" * 3000 + "]" * 3000
RUN = "sample mine gradients"

# Command lines


def option(name: str, *values: str) -> Change:
    """Give an option one of the values."""
    return lambda case, rng: case.option(name, rng.choice(values))


#: Option -> commands, and values that are refused in words that name the option.
WRONG_OPTIONS: dict[str, tuple[str, ...]] = {
    "--chains": ("sample mine budget", "0", "-1", "x", "1.5", LONG),
    "--epsilon": ("budget sample mine", "٣", "1_0", "four", "", "nan", "0x4", "4,0", "0", "-1", "-inf",
        "1e-400"),
    "--delta": ("cost sample", "0", "1", "-1", "nan", "inf", "x", LONG),
    "--iterations": ("cost sample mine", "1.5", "x", "", "nan", "1e", "0", "-1", "-" + LONG),
    "--seed": (RUN, "-1", "x", "1.5", ""),
    "--model": ("budget sample data tune", "moon", "", "Normal", "OWN", "é"),
    "--method": ("budget sample tune", "dp-hcm", "", "own", "nan"),
}  # fmt: skip
COMMANDS = [
    *(Mutation(f"{name} wrong", commands, option(name, *values), word=name.strip("-")) for name, (commands,
        *values) in WRONG_OPTIONS.items()),
    Mutation("epsilon otherwise", "budget sample mine", option("--epsilon", "4.0", "4e0", "4.", "+4", "04"),
             True),
]  # fmt: skip


# Texts and YAML: studies and hyperparameters


def text(file: str, edit: Callable[[str, Rng], str | bytes]) -> Change:
    """Edit the text of a file."""

    def change(case: Case, rng: Rng) -> None:
        content = edit(case.path(file).read_text(), rng)
        case.path(file).write_bytes(content.encode() if isinstance(content, str) else content)

    return change


def swap(file: str, old: str, *news: str) -> Change:
    """Put one of the texts in the place of another, which has to be there."""
    return text(file, lambda content, rng: content.replace(old, rng.choice(news)))


def contents(file: str, *wrong: str | bytes) -> Change:
    """Put one of the texts in the place of a whole file."""
    return text(file, lambda content, rng: rng.choice(wrong))


def further(file: str, *ends: str) -> Change:
    """Put one of the texts at the end of a file."""
    return text(file, lambda content, rng: content + rng.choice(ends))


def put(file: str, place: str, *values: Any) -> Change:
    """Put one of the values at a place (keys separated by slashes) of a YAML file; ... removes it."""

    def change(case: Case, rng: Rng) -> None:
        content = yaml.safe_load(case.path(file).read_text())
        *above, key = place.split("/")
        inner = content
        for name in above:
            inner = inner[name]
        inner[key] = rng.choice(values)
        if inner[key] is ...:
            del inner[key]
        case.path(file).write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True))

    return change


def put_out(file: str, *places: str) -> Change:
    """Remove one of the places of a YAML file."""
    return lambda case, rng: put(file, rng.choice(places), ...)(case, rng)


def wrong(file: str, commands: str, table: dict[str, tuple[Any, ...]]) -> Iterable[Mutation]:
    """Return a mutation for each place of a YAML file; the refusal names the last key."""
    for place, values in table.items():
        word = place.rpartition("/")[2]
        yield Mutation(f"{file}: {place} wrong", commands, put(file, place, *values), word=word)


def reordered(content: str, rng: Rng) -> str:
    """YAML with its keys in another order."""
    items = list(yaml.safe_load(content).items())
    rng.shuffle(items)
    return yaml.safe_dump(dict(items), sort_keys=False, default_flow_style=rng.choice([None, True, False]))


def spaced(content: str, rng: Rng) -> str:
    """YAML with comments, blank lines, and the end of a document."""
    begin, end = rng.choice(["---\n", "# ٣ é\n", "\n\n"]), rng.choice(["\n", "\n...\n", "\n\n# end\n"])
    return begin + content.strip() + "  # a word" + end


def damaged_yaml(file: str, commands: str) -> list[Mutation]:
    """Return mutations that leave no YAML, or none that is a mapping."""
    return [
        Mutation(f"{file}: keys in another order", commands, text(file, reordered), True),
        Mutation(f"{file}: comments and blank lines", commands, text(file, spaced), True),
        Mutation(f"{file}: no YAML", commands, contents(file, "a: [\n", "a: b: c\n", "\ttitle: x\n",
                 b"\xff\xfe\x00", b"\x00", "a: !!python/object:os.x {}\n", "*a\n", "a: 1\n---\nb: 2\n",
                 "{a: 1}}",
                 "%YAML 9\n", "? [a]\n: 1\n"), word=Path(file).name),
        Mutation(f"{file}: no mapping", commands, contents(file, "", "[]\n", "null\n", "5\n", "word\n",
                 "2024-01-01\n", "- a: 1\n", "true\n", "~: 1\n"), word=Path(file).name),
        Mutation(f"{file}: nested 3,000 deep", commands, further(file, f"\nextra: {DEEP}\n",
                 "\nextra: " + "{a: " * 3000 + "1" + "}" * 3000), word=Path(file).name),
    ]  # fmt: skip


S, H, M = "config/studies/tiny.yaml", "config/hyperparameters/tiny.yaml", "mine.yaml"
ASK, SOME, OWN = "budget sample data mine", "budget sample", "cost mine"
CELL = "methods/dp-penalty"
COUNT = (0, -1, 1.5, "x", [1])
STUDIES = [
    *wrong(S, ASK, {
        "epsilon": (4,),
        f"{CELL}/options": ({"nope": 1}, {"": 1}, {"clip": "big"}, {"tau": None}, {"clip": True},
            {"clip": -1}, {"clip": NAN}, [1], "clip", 3),
        "settings_of": ("",),
        "chains": (*COUNT, None, True, 10**9, 10**22),
        "seeds": (*COUNT, None, NAN, 10**12, 10**22),
        f"{CELL}/thin": COUNT,
        "delta": (0, 1, NAN, None, True, [0.1], "0.1/m", "n", "0.1/n/n", "1/0", "0/n", "50/n"),
        "models/own/epsilons": ([], 4, None, [0], [NAN], ["four"], ["٣"], [[4]], [True], ["1_0"]),
        f"{CELL}/algorithm": ("dp-hcm", "", "../x", "RWMH", 5, None, ["rwmh"]),
        f"{CELL}/models": (["moon"], [], "own", [5]),
        "models/own/data": ("nope", "fresh", "fresh--1", "", 5, None),
        "models": (None, [], {}, 5, "own", ["own"]),
        "tuning": ([], 5, {"mode": "x"}, {"seeds": 0}, {"methods": ["x"]}, {"trials": "x"}),
    }),
    *damaged_yaml(S, ASK),
    Mutation("4.0 for 4", SOME, put(S, "models/own/epsilons", [1.0, 4.0], [4e0]), True),
    Mutation("delta otherwise", SOME, put(S, "delta", 0.005, 1e-3, "0.1 / n", "1e-1/n"), True),
    Mutation("defaults left out", SOME, put_out(S, "chains", "epsilon_kind", "settings_of", "tuning"), True),
    Mutation("key missing", ASK, put_out(S, "title", "delta", "seeds", "models", "methods",
             "models/own/epsilons", "models/flat-banana-2d/tuning_epsilon"), word="missing"),
    Mutation("no budget and no iterations", ASK, put(S, f"{CELL}/epsilons", ["inf"]), word="iterations"),
    Mutation("key twice", ASK, further(S, "\ntitle: b\n", "\nseeds: 3\n"), word="tiny.yaml"),
]  # fmt: skip

BAD_NUMBERS = (0, -1, NAN, INF, "big", None, True, [], {}, [1], 1e200, 1e-200, "", "٣", "1_0", "2020-01-01")
HYPERPARAMETERS = [
    *wrong(M, OWN, {
        "tau": BAD_NUMBERS,
        "clip": BAD_NUMBERS,
        "proposal_sd": (0, NAN, "big", None, True, [], {}, [1, 1, 1], [1], [1, "a"], [1, NAN], [[1, 1]],
            [0.1, -0.1], "0.1, 0.2"),
        "hyperparameters": (None, [], 5, "x"),
    }),
    *wrong(H, SOME, {"dp-penalty": (None, [], 5, "own", {"own": []}), "dp-penalty/own/tau": BAD_NUMBERS}),
    *damaged_yaml(M, OWN),
    *damaged_yaml(H, SOME),
    Mutation("of another model or method", OWN, text(M, lambda t, rng: yaml.safe_dump({rng.choice(["model",
             "method"]): rng.choice(["moon", 5, None, []]), "hyperparameters": yaml.safe_load(t)}))),
    Mutation("key missing", OWN, put_out(M, "tau", "clip", "proposal_sd"), word="missing"),
    Mutation("key unknown", OWN, further(M, "\nmass: 1\n"), word="unknown hyperparameter"),
    Mutation("key twice or of the wrong kind", OWN, further(M, "\ntau: 5\n", "\n5: 1\n", "\nnull: 1\n",
             "\n[a]: 1\n", "\n'': 1\n"), word=M),
]  # fmt: skip


# Models

LIKELIHOOD = "-0.5 * ((rows - theta) ** 2).sum(axis=1)"
DIMENSION, TRUE_THETA = "dimension = 2", "true_theta = np.array([1.0, -1.0])"
USE = "budget sample mine data rows"


def source(old: str, *news: str) -> Change:
    """Put one of the texts in the place of another in the model's source."""
    return swap("own.py", old, *news)


def likelihood(*texts: str) -> Change:
    """Let log_likelihood return something else; L: its right value."""
    right = f"return {LIKELIHOOD}"
    return source(right, *("return " + words.replace("L", f"({LIKELIHOOD})") for words in texts))


def gradient(*texts: str) -> Change:
    """Let log_likelihood_gradient return something else."""
    return source("return rows - theta\n", *(f"return {words}\n" for words in texts))


#: Name of a wrong model -> commands, word of the refusal, and the change.
WRONG_MODELS: dict[str, tuple[str, str, Change]] = {
    "values of all rows for each": (RUN, "log_likelihood", likelihood("L[:, None] - L[None, :]",
        "-0.5 * ((rows - theta) ** 2)", "L[:, None]", "L[None, :]")),
    "a scalar": (RUN, "log_likelihood", likelihood("L.sum()", "float(L.sum())", "theta.sum()", "5")),
    "no real numbers": (RUN, "log_likelihood", likelihood("L + 0j", "iter(L)", "dict(enumerate(L))", "None",
        "...", "self", "L.astype(str)", "L.astype(object)", "L.astype('datetime64[s]')")),
    "a row that depends on others": (RUN, "log_likelihood", likelihood("L - L.mean()", "np.sort(L)",
        "L / (1 + np.abs(L).max())", "np.cumsum(L)")),
    "raises": (RUN, "own", source(f"return {LIKELIHOOD}", "raise RuntimeError('a\\nb')", "return 1 / 0",
        "assert False", "raise StopIteration", "return self.nope")),
    "gradient of the wrong shape": ("gradients", "log_likelihood_gradient",
        gradient("(rows - theta).sum(axis=1)", "(rows - theta).T", "(rows - theta)[:-1]", "0.0", "None")),
    "no gradient": ("gradients", "gradient", source("def log_likelihood_gradient", "def other")),
    "prior NaN": (RUN, "log_prior", source("return -0.005 *", "return np.nan *", "return np.inf *")),
    "dimension wrong": (USE, "dimension", source(DIMENSION, "pass",
        *(f"dimension = {value}" for value in ("0", "'2'", "2.5", "None", "[2]", "10**22")))),
    "n wrong": ("data", "n", source("n = 20", "n = 0", "n = 'many'", "n = 1.5", "n = None")),
    "true_theta wrong": (USE, "true_theta", source(TRUE_THETA, *(f"true_theta = {value}" for value in
        ("np.zeros(3)", "5", "'ab'", "None", "[1, None]", "[1.0, np.nan]", "[1j, 0]")))),
    "raises or leaves on import": (USE, "own", source("import numpy as np",
        *(f"import numpy as np\n{line}" for line in ("1 / 0", "nope", "raise Exception('a\\nb')",
        "import nope", "class Broken(", "raise RecursionError", "import sys; sys.exit(0)")))),
    "no module of this name": (USE, "", put(S, "models/own/model", "nope:Normal", ":Normal", "..own:Normal",
        "own.py:Normal", "é:Normal")),
}  # fmt: skip
MODELS = [
    *(Mutation(name, commands, change, word=word) for name, (commands, word, change) in WRONG_MODELS.items()),
    Mutation("a result in other words", RUN, likelihood("-L * -1.0", "L[::-1][::-1]", "np.asfortranarray(L)",
             "L + 0.0 * theta[0]", "L.tolist()", "tuple(L)"), True),
    Mutation("not finite in places", RUN, likelihood("np.where(rows[:, 0] > 1, np.nan, L)",
             "np.full(len(rows), np.nan)", "np.where(rows[:, 0] > 1, -np.inf, L)"), None),
]  # fmt: skip


# NetCDF: data files and chain files


def file_of(case: Case) -> str:
    """Return the file that a mutation is for: the problem, or a chain where the command reads chains."""
    return "chain-0.nc" if "--chains" in case.argv else "own.nc"


def part(place: str, *values: Any) -> Change:
    """Give an attribute or variable, named group/name, one of the values; ... removes it.

    A value for a variable is a function of its array.
    """

    def change(case: Case, rng: Rng) -> None:
        value, (group, _, name) = rng.choice(values), place.rpartition("/")
        with netCDF4.Dataset(case.path(file_of(case)), "r+") as file:
            file.set_auto_maskandscale(False)
            at = file[group] if group else file
            if name in at.variables:
                array = at[name][:]
                at.renameVariable(name, f"{name}_{len(at.variables)}")  # another name at each change
                if value is not ...:
                    add_variable(at, name, np.asarray(value(array)))
            elif value is ... and name in file.groups:
                file.renameGroup(name, f"old_{name}")
            elif value is ...:
                at.delncattr(name)
            else:
                at.setncattr(name, value)

    return change


def add_variable(at: Any, name: str, array: np.ndarray) -> None:
    """Add a variable with dimensions of its own to a file or group."""
    dimensions = [f"{name}_{len(at.variables)}_{axis}" for axis in range(array.ndim)]
    for dimension, size in zip(dimensions, array.shape, strict=True):
        at.createDimension(dimension, size)
    kind = str if array.dtype.kind in "UO" else array.dtype
    order: Any = "big" if array.dtype.byteorder == ">" else "native"
    variable = at.createVariable(name, kind, dimensions, endian=order)
    variable[...] = array.astype(object) if kind is str else array


def missing(*places: str) -> Change:
    """Take one of the attributes, variables or groups away."""
    return lambda case, rng: part(rng.choice(places), ...)(case, rng)


def one(value: float) -> Edit:
    """Put a value somewhere in the middle of an array."""

    def change(values: np.ndarray) -> np.ndarray:
        values = values.astype(float)
        values.reshape(-1)[values.size // 2] = value
        return values

    return change


def as_text(values: np.ndarray) -> np.ndarray:
    """Return text of the same shape."""
    return np.full(values.shape, "a", object)


def bytes_of(change: Callable[[bytes, Rng], bytes]) -> Change:
    """Change the bytes of the command's file."""
    return lambda case, rng: case.path(file_of(case)).write_bytes(
        change(case.path(file_of(case)).read_bytes(), rng)
    )


def damaged(content: bytes, rng: Rng) -> bytes:
    """Put other bytes at a few places."""
    changed = bytearray(content)
    for _ in range(rng.choice([1, 3, 30])):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def wrong_parts(commands: str, table: dict[str, tuple[Any, ...]]) -> Iterable[Mutation]:
    """Return a mutation for each attribute or variable; the refusal names the word that comes first."""
    for place, (word, *values) in table.items():
        yield Mutation(f"{place} wrong ({commands})", commands, part(place, *values), word=word)


def netcdf(commands: str) -> list[Mutation]:
    """Return mutations of any NetCDF file."""
    return [
        Mutation("further attribute", commands, part("history", "by hand", 5, [1.0, 2.0]), True),
        Mutation("damaged bytes", commands, bytes_of(damaged), None),
        Mutation("cut off", commands, bytes_of(lambda b, rng: b[: rng.randrange(len(b) - 1)]), word=".nc"),
        Mutation("no NetCDF", commands, bytes_of(lambda b, rng: rng.choice([b"", b"CDF", b"\x89HDF\r\n\x1a\n",
                 b"1,2\n", b[512:], b"\0" * 4096])), word=".nc"),
    ]  # fmt: skip


R = "rows.csv"
C = "mine rows"


def cell(*values: str) -> Change:
    """Put one of the texts in the place of a number, not in the first line."""

    def edit(content: str, rng: Rng) -> str:
        lines = [line.split(",") for line in content.splitlines()]
        lines[rng.randrange(1, len(lines))][rng.randrange(2)] = rng.choice(values)
        return "\n".join(map(",".join, lines)) + "\n"

    return text(R, edit)


DATA_FILES = [
    *netcdf("sample"),
    *wrong_parts("sample", {
        "temperature": ("temperature", -1.0, 0.0, NAN, INF, "x", "", [1.0, 2.0]),
        "rows": ("rows", *map(one, (NAN, INF, 1e151)), lambda a: a[:, 0], lambda a: a[None],
            lambda a: a[:0], lambda a: a[:, :1], lambda a: np.tile(a, 2), as_text),
        "starts": ("start", lambda a: a[:, 0], lambda a: a[:, :1], lambda a: a[:0], one(NAN), as_text),
    }),
    Mutation("rows of another type", "sample", part("rows", lambda a: a.astype("f4"),
             lambda a: a.astype(">f8"), lambda a: a.round().astype("i4")), True),
    Mutation("attribute or variable missing", "sample", missing("label", "model", "dataset", "temperature",
             "rows", "starts", "true_theta", "reference", "baselines", "posterior_mean"), word="missing"),
    # Rows as CSV
    Mutation("a header", C, text(R, lambda t, rng: rng.choice(["x,y", '"x","y"', "é,ü"]) + "\n" + t), True),
    Mutation("numbers in other words", C, cell("4", "4.", "+4", "4e0", " 4 ", ".5"), True),
    Mutation("quoted numbers, or of other scripts", C, cell('"4"', "'4'", "٣", "1_0"), None),
    Mutation("blank lines", C, further(R, "\n", "\n\n\n", "  \n"), word="line 21"),
    Mutation("header that is a broken number", C, text(R, lambda t, rng: rng.choice(["1.o,2",
             "0,9;-2,0", "1.5,", ",2", "1 0,2"]) + "\n" + t.split("\n", 1)[1]), word="line 1"),
    Mutation("no number", C, cell("x", "1..0", "1,", "0x4", "1 2", "None", "true", "", " "), word="line"),
    Mutation("lines of different lengths", C, further(R, "1\n", "1,2,3\n", "1,2,\n"), word="line 21"),
    Mutation("other columns than the model's", C, swap(R, ",", ",0,"), word="columns"),
    Mutation("no rows", C, contents(R, "", "\n", "x,y\n", b"\xff\xfe1", b"\0\0", b"PK\3\4\x99",
             "1,2\n".encode("utf-16"), "1," * 200_000 + "1\n"), word=R),
]  # fmt: skip

E = "evaluate trace"
CHAINS = [
    *netcdf(E),
    *wrong_parts(E, {
        "model": ("model", 5, "moon", "", [1.0, 2.0]),
        "epsilon": ("epsilon", "x", "-1", "", [1.0, 2.0], NAN),
        "thin": ("thin", "x", 0, -1, 1.5, NAN, [1, 1], LONG),
        "iterations": ("iterations", "many", -1, NAN, [6, 6], LONG, 10**12),
        "posterior/theta": ("theta", lambda a: a[0], lambda a: a[None], lambda a: a[:, :, :1],
            lambda a: a[:0], lambda a: np.tile(a, (1, 1, 2)), as_text),
    }),
    *wrong_parts("evaluate", {
        "seed": ("seed", "x", -1, 1.5, [0, 1], NAN, "", LONG),
        "ledger": ("ledger", "{", "", "\0", DEEP, "5", "[]", '{"budget": 1}', '{"delta": null}', 5,
            '{"budget": {}, "epsilon_spent": "x", "performed": 5, "forfeited": []}'),
    }),
    Mutation("variable or group missing", E, missing("posterior/theta", "constant_data/theta_0", "posterior",
             "sample_stats", "private_diagnostics", "constant_data"), word="missing"),
    Mutation("draws lost or not finite", E, part("posterior/theta", lambda a: a[:, :3], lambda a: a[:, :0],
             lambda a: np.tile(a, (1, 5, 1)), one(NAN), one(INF), one(1e300)), None),
]  # fmt: skip


# Tables of metrics

T = "metrics.csv"
ROW = "tiny,flat-banana-2d,dp-penalty,1,9,mmd"


def value(column: str, metric: str, *values: str) -> Change:
    """Put one of the texts into a column of a row with this metric; "" stands for any."""

    def edit(content: str, rng: Rng) -> str:
        head, *lines = (line.split(",") for line in content.splitlines())
        row = rng.choice([line for line in lines if not metric or line[5] == metric])
        row[head.index(column)] = rng.choice(values)
        return "".join(",".join(line) + "\n" for line in (head, *lines))

    return text(T, edit)


def shuffled_table(content: str, rng: Rng) -> str:
    """The table with its columns and its rows in another order, and perhaps one more column."""
    head, *lines = (line.split(",") for line in content.splitlines())
    order, more = rng.sample(range(7), 7), rng.choice([[], ["extra"]])
    table = [head, *rng.sample(lines, len(lines))]
    return "".join(",".join([line[i] for i in order] + more) + "\n" for line in table)


def no_column(content: str, rng: Rng) -> str:
    """The table with the name of one of its columns written otherwise."""
    head, body = content.split("\n", 1)
    name = rng.choice(head.split(","))
    return head.replace(name, rng.choice([name.upper(), f" {name}", "", f"{name}2"])) + "\n" + body


#: Change, whether it is valid, and the word of the refusal.
OF_TABLES: dict[str, tuple[Change, bool | None, str]] = {
    "columns and rows in another order": (text(T, shuffled_table), True, ""),
    "numbers in other words": (value("value", "mmd", "1", "0.10", "1e-1", "2.", "+0.5"), True, ""),
    "cut off": (text(T, lambda t, rng: t[: rng.randrange(60, len(t))]), None, ""),
    "no number": (value("value", "mmd", "nan", "x", "0.1.2", "NA", "0.1 nats", ""), False, T),
    "epsilon that is none": (value("epsilon", "mmd", "x", "-1", "0", "nan", "٣"), False, "epsilon"),
    "column missing": (text(T, no_column), False, "column"),
    "lines too long or cut off": (further(T, f"{ROW},0.1,5\n", f"{ROW}\n"), False, T),
    "no table": (contents(T, "", "a", '"', "a,b\n1,2\n", b"\xff\xfe", b"\0" * 99), False, T),
}
TABLES = [Mutation(name, "plot", change, valid, word) for name, (change, valid, word) in OF_TABLES.items()]
