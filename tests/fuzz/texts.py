"""Mutations of command lines, studies, hyperparameters and models.

A mutation's `change(case, rng)` edits the files or the arguments of a valid input; `rng` chooses among what
the name covers. A value of `valid=None` stands for what no rule decides: it may be taken or refused.
"""

import random
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import yaml

from fuzz.inputs import Case

Change = Callable[[Case, random.Random], None]


class Unfit(Exception):
    """A mutation does not find what it would change, since another came before."""


def swap(content: str, old: str, new: str) -> str:
    """Put a text in the place of another, which has to be there."""
    if old not in content:
        raise Unfit(old)
    return content.replace(old, new)


class Mutation(NamedTuple):
    """A named change of a valid input."""

    name: str
    commands: str  # of COMMANDS to which it applies, separated by spaces
    change: Change
    valid: bool | None = False
    word: str = ""  # that the refusal has to say
    mixes: bool = False  # whether another mutation may follow


LONG = "1" + "0" * 22  # an integer of 23 digits
DEEP = "[" * 3000 + "]" * 3000
NO_NUMBERS = ("٣", "1_0", "four", "", "nan", "0x4", "4,0", "1e")
BELOW = ("0", "-1", "-inf", "1e-400")
ALL = "budget cost sample mine gradients data rows tune evaluate trace plot models"
WRITE = "sample mine data rows tune evaluate trace plot models baselines"

MORE = f"{ALL} baselines"

# Command lines


def option(name: str, *values: str) -> Change:
    """Give an option one of the values."""
    return lambda case, rng: case.option(name, rng.choice(values))


def output(*names: str) -> Change:
    """Write to one of the names; {path}: of the folder."""

    def change(case: Case, rng: random.Random) -> None:
        name = rng.choice(names)
        case.outputs = [name.format(path=case.folder)]
        if "--seed" in case.argv:
            case.option("--seed", "0")
        case.option("--output", *case.outputs)

    return change


def over(*files: str) -> Change:
    """Write over one of the files."""

    def change(case: Case, rng: random.Random) -> None:
        output(rng.choice(files))(case, rng)
        case.outputs = []

    return change


def existing(case: Case, rng: random.Random) -> None:
    """Let a result of ours be there."""
    made = "chain-0.nc" if case.command in ("sample", "mine") else "own.nc"
    for name in case.outputs:
        case.path(name).write_bytes(case.path(made).read_bytes())


def foreign(case: Case, rng: random.Random) -> None:
    """Put a file that dpmc did not write at the place of the result."""
    for name in case.outputs[:1]:
        case.path(name).write_text(rng.choice(["my thesis\n", "a,b\n1,2\n", "", "\0\0"]))


def shuffled(case: Case, rng: random.Random) -> None:
    """Put the options in another order."""
    places = [i for i, word in enumerate(case.argv) if word.startswith("--")]
    parts = [case.argv[i:j] for i, j in zip(places, [*places[1:], len(case.argv)], strict=True)]
    rng.shuffle(parts)
    case.argv[1:] = [word for part in parts for word in part]


def lacking(case: Case, rng: random.Random) -> None:
    """Take away an option that is needed."""
    needed = ["--model", "--method", "--output", "--figure", "--metrics", "--chains"]
    named = [
        name for name in case.names() if name in needed or (name == "--epsilon" and "--json" in case.argv)
    ]
    if "--figure" in named and "models" in case.argv:
        named.remove("--figure")
    case.without(rng.choice(named))


def without_value(case: Case, rng: random.Random) -> None:
    """Take the values of an option away."""
    case.option(rng.choice([name for name in case.names() if name not in ("--quiet", "--json")]))


def joined(case: Case, rng: random.Random) -> None:
    """Write --name=value for --name value, where there is one value."""
    for name in case.names():
        i = case.argv.index(name)
        values = list(case.argv[i + 1 : i + 3])
        if values and not values[0].startswith("--") and (len(values) == 1 or values[1].startswith("--")):
            case.argv[i : i + 2] = [f"{name}={values[0]}"]


def append(*words: str) -> Change:
    """Put words at the end."""
    return lambda case, rng: case.argv.extend(words)


def twice(case: Case, rng: random.Random) -> None:
    """Name one file for two outputs."""
    case.option("--output", "new.nc", rng.choice(["new.nc", "./new.nc", f"{case.folder}/new.nc"]))
    case.outputs = []


def is_folder(case: Case, rng: random.Random) -> None:
    """Name a folder for a file that is to be read."""
    named = ["--data", "--rows", "--chains", "--metrics", "--hyperparameters"]
    case.option(
        rng.choice([name for name in named if name in case.argv]), rng.choice(["config/studies", "/", "."])
    )


def missing_file(*names: str) -> Change:
    """Name a file that is not there for one that is to be read."""

    def change(case: Case, rng: random.Random) -> None:
        named = ("--data", "--rows", "--chains", "--metrics", "--hyperparameters")
        case.option(rng.choice([name for name in named if name in case.argv]), rng.choice(names))

    return change


READ = "cost sample mine gradients rows evaluate trace plot"
CHAINS = "sample mine gradients"
COMMANDS = [
    Mutation("options in another order", MORE, shuffled, True, mixes=True),
    Mutation("--name=value", MORE, joined, True),
    Mutation("epsilon written otherwise", "budget sample mine tune", lambda case,
             rng: None if "tune" in case.argv
             else case.option("--epsilon", rng.choice(["4.0", "4e0", "4.", "+4", "04"])), True, mixes=True),
    Mutation("no budget", CHAINS, option("--epsilon", "inf"), True),
    Mutation("checkpoints often", CHAINS, option("--checkpoint-seconds", "0", "0.001", "1e9"), True),
    Mutation("output in a new folder", WRITE.replace("plot ", "").replace("models", ""),
             output("a/b/new", "sub folder/neu ü", "{path}/new"), True),
    Mutation("seed of the output's name", "mine gradients", lambda case, rng: (
        case.without("--seed"), output("seed-1.nc", "a/seed-0.nc")(case, rng)), True),
    Mutation("a result again, by --force", "sample mine data rows", lambda case, rng: (
        existing(case, rng), case.argv.append("--force")), True),
    Mutation("a result again, without --force", "sample mine data rows", existing, word="--force"),
    Mutation("another kind of result, by --force", "evaluate sample", lambda case, rng: (
        case.path(case.outputs[0]).write_bytes(case.path("own.nc").read_bytes()), case.argv.append(
             "--force"))),
    Mutation("chains that share a budget", CHAINS, option("--chains", "1", "2", "3"), True),
    Mutation("chains below 1", "sample mine budget", option("--chains", "0", "-1", "x", "1.5", LONG),
             word="chains"),
    Mutation("a delta of one's own", "sample mine budget", option("--delta", "1e-6", "0.01"), True,
             mixes=True),
    Mutation("the file named otherwise", "sample evaluate", option("--data", "./own.nc", "config/../own.nc"),
             True),
    Mutation("epsilon that is no number", "budget sample mine", option("--epsilon", *NO_NUMBERS),
             word="epsilon"),
    Mutation("epsilon not above 0", "budget sample mine", option("--epsilon", *BELOW), word="epsilon"),
    Mutation("epsilon huge or tiny", "budget sample mine", option("--epsilon", "1e-300", "1e300", "1e400",
             LONG), None),
    Mutation("delta outside (0, 1)", "cost sample", option("--delta", "0", "1", "-1", "nan", "inf", "x",
             LONG),
             word="delta"),
    Mutation("whole numbers that are none", "cost sample mine", option("--iterations", "1.5", "x", "", "nan",
             "1e"),
             word="iterations"),
    Mutation("whole numbers below 1", "cost sample mine", option("--iterations", "0", "-1", "-" + LONG),
             word="iterations"),
    Mutation("more iterations than the budget has", "sample mine", option("--iterations", "100000", LONG),
             word="iterations"),
    Mutation("iterations of 23 digits", "cost", option("--iterations", LONG), None),
    Mutation("iterations of 23 digits without a budget", "mine", lambda case, rng: (
        case.option("--epsilon", "inf"), case.option("--iterations", LONG)), word="iterations"),
    Mutation("n below 1", "cost", option("--n", "0", "-1", "x", "1.5"), word="--n"),
    Mutation("n of 23 digits", "cost", option("--n", LONG), None),
    Mutation("thin below 1", CHAINS, option("--thin", "0", "-2", "1.5", "x"), word="thin"),
    Mutation("thin of 23 digits", CHAINS, option("--thin", LONG), None),
    Mutation("seeds that are none", CHAINS, option("--seed", "-1", "x", "1.5", ""), word="seed"),
    Mutation("seed without a start point", "sample", lambda case, rng: (
        output("new.nc")(case, rng), case.option("--seed", rng.choice(["1000", LONG]))), word="seed"),
    Mutation("seed of 23 digits, start points made", "mine", option("--seed", LONG), None),
    Mutation("a seed twice", "sample", lambda case, rng: (over("new-{{seed}}.nc")(case, rng),
             case.option("--seed", "0", "0")), word="seed"),
    Mutation("seconds below 0", CHAINS, option("--checkpoint-seconds", "-1", "nan", "x", "-inf", ""),
             word="checkpoint-seconds"),
    Mutation("unknown option", MORE, append("--modle", "own")),
    Mutation("a word too many", "budget cost data rows plot models", append("--study", "tiny", "own")),
    Mutation("an option's value missing", "budget cost sample mine data rows tune evaluate plot",
             without_value),
    Mutation("a needed option missing", ALL, lacking),
    Mutation("unknown command", MORE, lambda case, rng: case.argv.__setitem__(0, rng.choice(["", "sampel",
             "--x", "ü"]))),
    Mutation("nothing at all", "budget", lambda case, rng: case.argv.clear()),
    Mutation("unknown model", "budget sample data tune", option("--model", "moon", "", "Normal", "OWN", "é"),
             word="model"),
    Mutation("unknown method", "budget sample tune", option("--method", "dp-hcm", "", "own", "nan"),
             word="method"),
    Mutation("unknown study", MORE, option("--study", "nope", "nope.yaml", "a/b", "config", "..")),
    Mutation("study that is a folder", MORE, option("--study", "", "/", "config/studies")),
    Mutation("method that does not run there", "budget sample", lambda case, rng: (
        case.option("--model", "flat-banana-2d"), case.option("--method", "rwmh"))),
    Mutation("unknown figure", "plot", option("--figure", "mmd", "", "../mmd_easy", "nan"), word="figure"),
    Mutation("format that is none", "plot models", option("--output", "new.txt", "new", "new.nc", ".svg")),
    Mutation("an input is a folder", READ, is_folder),
    Mutation("an input is missing", READ, missing_file("nope.nc", "nope.csv", "", "no/pe", "\udcff.nc",
             "n" * 300)),
    Mutation("an input's name has two lines", READ, missing_file("no\npe.nc", "no\r\npe.csv", "no\x1b[1mpe")),
    Mutation("output ''", WRITE, over("")),
    Mutation("output /", WRITE, over("/", ".", "..", "config")),
    Mutation("output below a file", WRITE, over("own.py/new.nc", "rows.csv/a/new.csv",
             "precious.txt/new.svg")),
    Mutation("output of a long name", WRITE, over("n" * 300 + ".nc", "n/" * 3000 + "new.nc")),
    Mutation("output over the data", "sample evaluate trace", over("own.nc", "./own.nc", "config/../own.nc")),
    Mutation("output over the rows", "mine gradients rows", over("rows.csv")),
    Mutation("output over settings", "mine", over("mine.yaml", "config/hyperparameters/tiny.yaml")),
    Mutation("output over the study", WRITE, over("config/studies/tiny.yaml")),
    Mutation("output over the model", "mine data rows tune", over("own.py")),
    Mutation("output over chains", "evaluate trace", over("chain-0.nc")),
    Mutation("output over the table", "plot", over("metrics.csv")),
    Mutation("output over a foreign file", WRITE, over("precious.txt")),
    Mutation("a foreign file where the output goes", WRITE, foreign),
    Mutation("output over an input, by --force", "sample", lambda case, rng: (
        over("own.nc")(case, rng), append("--force")(case, rng))),
    Mutation("one output for two seeds", "sample", twice, word="output"),
    Mutation("outputs too few", "sample", option("--output", "new.nc", "new-{sed}.nc"), word="output"),
    Mutation("file through a link", "sample mine", lambda case, rng: (
        case.path("link.nc").symlink_to(case.path("own.nc" if case.command == "sample" else "rows.csv")),
        over("link.nc")(case, rng))),
]  # fmt: skip


# Studies and hyperparameters


def text(file: str, edit: Callable[[str, random.Random], str | bytes]) -> Change:
    """Edit the text of a file."""

    def change(case: Case, rng: random.Random) -> None:
        content = edit(case.path(file).read_text(), rng)
        case.path(file).write_bytes(content.encode() if isinstance(content, str) else content)

    return change


def put(file: str, place: str, *values: Any) -> Change:
    """Put one of the values at a place (keys separated by slashes) of a YAML file."""

    def change(case: Case, rng: random.Random) -> None:
        content = yaml.safe_load(case.path(file).read_text())
        *above, key = place.split("/")
        inner = content
        for name in above:
            inner = inner[name]
        inner[key] = rng.choice(values)
        case.path(file).write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True))

    return change


def removed(file: str, *places: str) -> Change:
    """Remove one of the places of a YAML file."""

    def change(case: Case, rng: random.Random) -> None:
        content = yaml.safe_load(case.path(file).read_text())
        *above, key = rng.choice(places).split("/")
        inner = content
        for name in above:
            inner = inner[name]
        if key not in inner:
            raise Unfit(key)
        del inner[key]
        case.path(file).write_text(yaml.safe_dump(content, sort_keys=False))

    return change


def reordered(content: str, rng: random.Random) -> str:
    """YAML with its keys in another order."""
    items = list(yaml.safe_load(content).items())
    rng.shuffle(items)
    return yaml.safe_dump(dict(items), sort_keys=False, default_flow_style=rng.choice([None, True, False]))


def spaced(content: str, rng: random.Random) -> str:
    """YAML with comments, blank lines, and the end of a document."""
    if content.lstrip().startswith("{"):  # where a line may end within a text
        raise Unfit
    lines = [line + rng.choice(["", "", "  # a word"]) for line in content.strip().splitlines()]
    return (
        rng.choice(["---\n", "# ٣ é\n", "\n\n"])
        + "\n".join(lines)
        + rng.choice(["\n", "\n...\n", "\n\n# end\n"])
    )


def not_yaml(content: str, rng: random.Random) -> str | bytes:
    """Write a file that is not YAML, or not text."""
    return rng.choice(["a: [\n", "a: b: c\n", "\ttitle: x\n", b"\xff\xfe\x00", b"\x00",
             "a: !!python/object:os.x {}\n",
                       "*a\n", "a: 1\n---\nb: 2\n", "{a: 1}}", "%YAML 9\n", "? [a]\n: 1\n"])  # fmt: skip


def not_a_mapping(content: str, rng: random.Random) -> str:
    """YAML of another form."""
    return rng.choice(["", "[]\n", "null\n", "5\n", "word\n", "2024-01-01\n", "- a: 1\n", "true\n", "~: 1\n"])


def deep(content: str, rng: random.Random) -> str:
    """YAML that is nested 3,000 deep."""
    return rng.choice([DEEP, content + f"\nextra: {DEEP}\n",
             content + "\nextra: " + "{a: " * 3000 + "1" + "}" * 3000,
                       "- " * 3000 + "a"])  # fmt: skip


def laughs(content: str, rng: random.Random) -> str:
    """YAML of a few lines that stands for 10^9 values."""
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"{b}: &{b} [{', '.join(['*' + a] * 10)}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True)]
    return content + "\n" + "\n".join(lines) + "\n"


S = "config/studies/tiny.yaml"
H = "config/hyperparameters/tiny.yaml"
ASK = "budget sample data mine"
SOME = "budget sample"
CELL = "methods/dp-penalty"
STUDIES = [
    Mutation("keys in another order", SOME, text(S, reordered), True, mixes=True),
    Mutation("comments and blank lines", SOME, text(S, spaced), True),
    Mutation("ends of lines of Windows", SOME, text(S, lambda t, rng: t.replace("\n", "\r\n").encode()),
             True),
    Mutation("4.0 for 4", SOME, put(S, "models/own/epsilons", [1.0, 4.0], [4e0], [1, 4e+0]), True,
             mixes=True),
    Mutation("delta otherwise", SOME, put(S, "delta", 0.005, 1e-3, "0.1 / n", "1e-1/n"), True, mixes=True),
    Mutation("anchors", SOME, text(S, lambda t, rng: swap(t, "epsilons: [1, 4]",
             "epsilons: &e [1, 4]").replace(
             "epsilons: [1, 2]", "epsilons: *e")), True),
    Mutation("defaults left out", SOME, removed(S, "chains", "epsilon_kind", "settings_of", "tuning"), True,
             mixes=True),
    Mutation("options that overrule", SOME, put(S, CELL + "/options", {"clip": 2}, {"tau": 5.0, "clip": 3}),
             True),
    Mutation("whole numbers as 3.0", SOME, put(S, "seeds", 2.0, 20.0), None),
    Mutation("chains as 1.0", SOME, put(S, "chains", 1.0, 2.0), None),
    Mutation("mark of byte order", SOME, text(S, lambda t, rng: "\ufeff" + t), None),
    Mutation("a billion values in nine lines", "budget", text(S, laughs)),
    Mutation("key missing", ASK, removed(S, "title", "delta", "seeds", "models", "methods",
             "models/own/epsilons", "models/flat-banana-2d/tuning_epsilon"), word="missing"),
    Mutation("unknown key", ASK, put(S, "epsilon", 4), word="epsilon"),
    Mutation("unknown key of a model", ASK, put(S, "models/own/epsilon", 4), word="own"),
    Mutation("unknown key of a method", ASK, put(S, CELL + "/clip", 4), word="clip"),
    Mutation("unknown option", ASK, put(S, CELL + "/options", {"nope": 1}, {"clop": 3}, {"": 1}),
             word="options"),
    Mutation("option of the wrong kind", ASK, put(S, CELL + "/options", {"clip": "big"}, {"tau": None},
             {"clip": [1]},
             {"clip": True}, {"proposal_sd": {"a": 1}}, {"clip": -1}, {"clip": float("nan")}),
             word="options"),
    Mutation("options that are no mapping", ASK, put(S, CELL + "/options", [1], "clip", 3, ["clip"]),
             word="options"),
    Mutation("unknown choice among options", ASK, put(S, "methods/rwmh/options", {"acceptance": "nope"},
             {"clip_distance": 3}, {"acceptance": ["barker"]}), word="options"),
    Mutation("settings of nobody: study", ASK, put(S, "settings_of", "nope", ""), word="settings_of"),
    Mutation("settings of nobody: model", ASK, put(S, "models/own/settings_of", "nope", ""),
             word="settings_of"),
    Mutation("settings of nobody: method", ASK, put(S, CELL + "/settings_of", "nope", ""), None),
    Mutation("no budget and no iterations", ASK, put(S, CELL + "/epsilons", ["inf"]), word="iterations"),
    Mutation("no budget and no iterations, by model", ASK, put(S, "models/own/epsilons", ["inf"], [1,
             "inf"]), None),
    Mutation("chains by the billion", ASK, put(S, "chains", 10**9, 10**22), word="chains"),
    Mutation("seeds by the billion", ASK, put(S, "seeds", 10**12, 10**22), word="seeds"),
    Mutation("counts below 1", ASK, put(S, "chains", 0, -1, 1.5, "x", None, [1], True), word="chains"),
    Mutation("seeds below 1", ASK, put(S, "seeds", 0, -1, 1.5, "x", None, [1], float("nan")), word="seeds"),
    Mutation("rows below 1", ASK, put(S, "models/own/n", 0, -1, 1.5, "x", [1]), word="own"),
    Mutation("rows by 23 digits", "budget data", put(S, "models/own/n", 10**22), None),
    Mutation("iterations below 1", ASK, put(S, CELL + "/most_iterations", 0, -1, 1.5, "x", None),
             word="iterations"),
    Mutation("iterations of 23 digits", ASK, put(S, CELL + "/most_iterations", 10**22), None),
    Mutation("thin below 1", ASK, put(S, CELL + "/thin", 0, -1, 1.5, "x"), word="thin"),
    Mutation("delta outside (0, 1)", ASK, put(S, "delta", 0, 1, -1, float("nan"), float("inf"), None, True,
             [0.1]),
             word="delta"),
    Mutation("delta of another rule", ASK, put(S, "delta", "0.1/m", "n", "0.1/n/n", "", "1/0", "1.2.3/n",
             "0/n"),
             word="delta"),
    Mutation("delta of 50/n for 20 rows", SOME, put(S, "delta", "50/n", "20/n"), word="delta"),
    Mutation("epsilons that are none", ASK, put(S, "models/own/epsilons", [], 4, None, [0], [-1], [float(
             "nan")],
             ["four"], ["٣"], [[4]], [True], [None], ["1_0"]), word="epsilons"),
    Mutation("tuning epsilon that is none", ASK, put(S, "models/own/tuning_epsilon", 0, "x", None, [1],
             float("nan")),
             word="tuning_epsilon"),
    Mutation("unknown algorithm", ASK, put(S, CELL + "/algorithm", "dp-hcm", "", "../x", "RWMH"),
             word="algorithm"),
    Mutation("algorithm of the wrong kind", ASK, put(S, CELL + "/algorithm", 5, None, ["rwmh"]),
             word="algorithm"),
    Mutation("unknown accountant", ASK, put(S, CELL + "/accountant", "rpd", "", 5, None, ["tight"]),
             word="accountant"),
    Mutation("unknown models of a method", ASK, put(S, CELL + "/models", ["moon"], [""], [], "own", [5]),
             word="models"),
    Mutation("unknown figures", ASK, put(S, "figures", ["mmd"], "mmd-easy", [5], None, {"mmd-easy": 1}),
             word="figures"),
    Mutation("unknown data", ASK, put(S, "models/own/data", "nope", "fresh", "fresh--1", "", 5, None),
             word="data"),
    Mutation("unknown start", ASK, put(S, "models/own/start", "nope", True, None), word="start"),
    Mutation("unknown model of the catalogue", ASK, put(S, "models/flat-banana-2d/model", "moon", "", 5),
             word="model"),
    Mutation("cells of no study", ASK, put(S, "methods/dp-mala", {"from_study": "nope"},
             {"from_study": "tiny"},
             {"from_study": ""}, {"from_study": "../x"}, {"from_study": 5}), word="from_study"),
    Mutation("label that is none", ASK, put(S, "models/Own Model", {"epsilons": [1], "tuning_epsilon": 1})),
    Mutation("label of the wrong kind", ASK, text(S, lambda t, rng: swap(t, "flat-banana-2d:", rng.choice(
        ["5:", "null:", "[a, b]:", "{a: b}:", "2024-01-01:", "true:"])))),
    Mutation("model or method of the wrong kind", ASK, put(S, "models/own", None, [], 5, "own")),
    Mutation("models of the wrong kind", ASK, put(S, "models", None, [], {}, 5, "own", ["own"]),
             word="models"),
    Mutation("methods of the wrong kind", ASK, put(S, "methods", None, [], {}, 5, {"dp-penalty": []}),
             word="methods"),
    Mutation("tuning of the wrong kind", ASK, put(S, "tuning", [], 5, {"mode": "x"}, {"seeds": 0},
             {"methods": ["x"]},
             {"models": ["moon"]}, {"trials": "x"}), word="tuning"),
    Mutation("title of the wrong kind", ASK, put(S, "title", "", 5, None, ["a"]), word="title"),
    Mutation("key twice", ASK, text(S, lambda t, rng: t + rng.choice(["\ntitle: b\n", "\nseeds: 3\n"])),
             word="tiny.yaml"),
    Mutation("no YAML", ASK, text(S, not_yaml), word="tiny.yaml"),
    Mutation("no mapping", ASK, text(S, not_a_mapping), word="tiny.yaml"),
    Mutation("nested 3,000 deep", ASK, text(S, deep), word="tiny.yaml"),
    Mutation("value nested 3,000 deep", ASK, text(S, lambda t, rng: swap(t,
        "{clip: 3, acceptance: barker}", "{clip: " + DEEP + "}")), word="tiny.yaml"),
]  # fmt: skip

BAD_NUMBERS = (0, -1, float("nan"), float("inf"), "big", None, True, [], {}, [1], 1e200, 1e-200, "")
BAD_LENGTHS = (0, -1, float("nan"), float("inf"), "big", None, True, [], {}, [1, 1, 1], [1], [1, "a"], [1,
             float("nan")],
               [1, None], [[1, 1]], [1, True], [0.1, -0.1], "0.1, 0.2")  # fmt: skip
M = "mine.yaml"
OWN = "cost mine"
HYPERPARAMETERS = [
    Mutation("keys in another order", OWN, text(M, reordered), True, mixes=True),
    Mutation("comments and blank lines", OWN, text(M, spaced), True),
    Mutation("4.0 for 4", OWN, text(M, lambda t, rng: re.sub(r"(?<![\d.])4(?![\d.])", rng.choice(["4.0",
             "4e0", "0.4e+1", "+4"]), t)), True, mixes=True),
    Mutation("one length for all", OWN, put(M, "proposal_sd", 0.1, [0.1, 0.1], 1, [1, 2]), True, mixes=True),
    Mutation("as dpmc tune writes them", OWN, text(M, lambda t, rng: yaml.safe_dump(
        {"model": "own", "method": "dp-penalty", "hyperparameters": yaml.safe_load(t), "tried": "no"})),
             True),
    Mutation("numbers as text", OWN, put(M, "tau", "4", "4.0", "٣", "1_0"), None),
    Mutation("whole number of 23 digits", OWN, put(M, "tau", 10**22, 10**400), None),
    Mutation("tau that is none", OWN, put(M, "tau", *BAD_NUMBERS), word="tau"),
    Mutation("clip that is none", OWN, put(M, "clip", *BAD_NUMBERS), word="clip"),
    Mutation("length that is none", OWN, put(M, "proposal_sd", *BAD_LENGTHS), word="proposal_sd"),
    Mutation("key missing", OWN, removed(M, "tau", "clip", "proposal_sd"), word="missing"),
    Mutation("unknown key", OWN, put(M, "mass", 1, None, "x"), word="mass"),
    Mutation("key of the wrong kind", OWN, text(M, lambda t, rng: t + rng.choice(
        ["\n5: 1\n", "\nnull: 1\n", "\n[a]: 1\n", "\ntrue: x\n", "\n'': 1\n"])), word="mine.yaml"),
    Mutation("of another model or method", OWN, text(M, lambda t, rng: yaml.safe_dump(
        {rng.choice(["model", "method"]): rng.choice(["moon", 5, None, []]),
             "hyperparameters": yaml.safe_load(t)}))),
    Mutation("hyperparameters that are none", OWN, put(M, "hyperparameters", None, [], 5, "x", {}),
             word="mine.yaml"),
    Mutation("key twice", OWN, text(M, lambda t, rng: t + "\ntau: 5\n"), word="mine.yaml"),
    Mutation("no YAML", OWN, text(M, not_yaml), word="mine.yaml"),
    Mutation("no mapping", OWN, text(M, not_a_mapping), word="mine.yaml"),
    Mutation("nested 3,000 deep", OWN, text(M, deep), word="mine.yaml"),
    Mutation("value nested 3,000 deep", OWN, text(M, lambda t, rng: swap(t, "[0.1, 0.2]", DEEP)),
             word="mine.yaml"),
    Mutation("study's: none", SOME, removed(H, "dp-penalty", "dp-penalty/own"), word="hyperparameters"),
    Mutation("study's: of the wrong kind", SOME, put(H, "dp-penalty", None, [], 5, "own", {"own": []},
             {"own": 5}),
             word="tiny.yaml"),
    Mutation("study's: a wrong value", SOME, put(H, "dp-penalty/own/tau", *BAD_NUMBERS), word="tau"),
    Mutation("study's: no YAML", SOME, text(H, not_yaml), word="tiny.yaml"),
    Mutation("study's: nested 3,000 deep", SOME, text(H, deep), word="tiny.yaml"),
]  # fmt: skip


# Models


def source(old: str, *news: str) -> Change:
    """Put one of the texts in the place of another in the model's source."""

    def change(case: Case, rng: random.Random) -> None:
        case.path("own.py").write_text(swap(case.path("own.py").read_text(), old, rng.choice(news)))

    return change


def name(*names: str) -> Change:
    """Name the model otherwise."""
    return put(S, "models/own/model", *names)


def packaged(case: Case, rng: random.Random) -> None:
    """Move the model into a package."""
    case.path("pack/age").mkdir(parents=True)
    case.path("own.py").rename(case.path("pack/age/own.py"))
    name("pack.age.own:Normal")(case, rng)


RATIO = "return -0.5 * ((rows - theta) ** 2).sum(axis=1)"
SQUARES = "-0.5 * ((rows - theta) ** 2)"
RUN = "mine gradients sample"
USE = "budget sample mine data rows"


def result(*texts: str) -> Change:
    """Let log_likelihood return something else."""
    return source(RATIO, *(f"return {text.replace('L', RATIO[7:])}" for text in texts))


def gradient(*texts: str) -> Change:
    """Let log_likelihood_gradient return something else."""
    return source("return rows - theta\n", *(f"return {text}\n" for text in texts))


MODELS = [
    Mutation("a result in other words", RUN, result("-(L) * -1.0", "np.array(L)", "(L)[::-1][::-1]",
             "np.asfortranarray(L)",
             "L + 0.0 * theta[0]", "np.where(np.isnan(L), -np.inf, L)"), True, mixes=True),
    Mutation("a class with more in it", USE, source("    columns = 2\n",
             "    columns = 2\n    extra = {'a': 1}\n", "",
             "    columns = np.int64(2)\n"), True, mixes=True),
    Mutation("dimension by a property", USE, source("    dimension = 2\n",
             "    @property\n    def dimension(self):\n"
             "        return 2\n", "    dimension = np.int64(2)\n"), True),
    Mutation("a prior in other words", RUN, source("return -0.005 *", "return -0.01 / 2 *",
             "return np.float64(-0.005) *",
             "return 0 if theta is None else -0.005 *"), True, mixes=True),
    Mutation("no prior", "sample mine data", source("def log_prior", "def other"), True),
    Mutation("a start", "mine data rows", source("    columns = 2\n", "    start = np.array([0.5, 0.5])\n",
             "    start = [0, 1]\n", "    start = (0.5, -2.0)\n"), True),
    Mutation("a temperature", "mine data rows", source("    columns = 2\n", "    tempering = 10\n",
             "    tempering = 20.0\n", "    tempering = None\n"), True),
    Mutation("inherited", USE, source("class Normal:", "class Base:\n    pass\n\nclass Normal(Base):"), True),
    Mutation("in a package", "budget mine data rows", packaged, True),
    Mutation("words on import", "budget sample mine", source("import numpy as np",
             "import numpy as np\nprint('hello')"),
             True),
    Mutation("numbers of 32 bits", RUN, result("(L).astype(np.float32)"), None),
    Mutation("whole numbers", RUN, result("(L).round().astype(int)", "(L) > -1"), None),
    Mutation("NaN in places", RUN, result("np.where(rows[:, 0] > 1, np.nan, L)",
             "np.full(len(rows), np.nan)"), None),
    Mutation("infinite in places", RUN, result("np.where(rows[:, 0] > 1, -np.inf, L)",
             "np.full(len(rows), np.inf)"), None),
    Mutation("rows changed in place", RUN, source(RATIO, f"rows -= theta\n        {RATIO}"), None),
    Mutation("each row for all", RUN, result("-(rows[:, 0] - theta[:1, None]).repeat(len(rows), axis=0)",
             "(L)[:, None] - (L)[None, :]", "np.subtract.outer(L, L)"), word="log_likelihood"),
    Mutation("sum over an axis forgotten", RUN, result(SQUARES, "(L)[:, None]", "(L)[None, :]"),
             word="log_likelihood"),
    Mutation("a scalar", RUN, result("(L).sum()", "float((L).sum())", "0.0", "rows.sum()", "theta.sum()",
             "5"),
             word="log_likelihood"),
    Mutation("of another length", RUN, result("(L)[:-1]", "(L)[:3]", "np.append(L, 0.0)", "np.zeros(0)",
             "theta",
             "np.unique(np.zeros(len(rows)))"), word="log_likelihood"),
    Mutation("complex", RUN, result("(L) + 0j", "(L) * 1j", "np.sqrt((L) + 0j)"), word="log_likelihood"),
    Mutation("lists of numbers", RUN, result("(L).tolist()", "tuple(L)", "list(L)"), valid=True),
    Mutation("iterators and the like", RUN, result("iter(L)", "dict(enumerate(L))"), word="log_likelihood"),
    Mutation("nothing", RUN, result("None", "...", "NotImplemented", "self"), word="log_likelihood"),
    Mutation("text and objects", RUN, result("(L).astype(str)", "'text'", "(L).astype(object)",
             "np.array([None] * len(rows))",
             "(L).astype('datetime64[s]')"), word="log_likelihood"),
    Mutation("a row that depends on others", RUN, result("L - (L).mean()", "L / (1 + np.abs(L).max())",
             "-0.5 * (((rows - rows.mean(axis=0)) - theta) ** 2).sum(axis=1)", "np.sort(L)", "np.cumsum(L)"),
             word="log_likelihood"),
    Mutation("raises", RUN, source(RATIO, "raise ValueError('no')", "raise RuntimeError('a\\nb')",
             "return 1 / 0",
             "assert False", "raise KeyError", "raise Exception", "raise StopIteration", "return self.nope"),
             word="own"),
    Mutation("leaves", RUN, source(RATIO, "raise SystemExit(0)", "import sys; sys.exit(0)",
             "raise SystemExit('bye')")),
    Mutation("other arguments", RUN, source("log_likelihood(self, theta, rows)",
             "log_likelihood(self, theta)",
             "log_likelihood(self)", "log_likelihood(self, theta, rows, more)"), word="log_likelihood"),
    Mutation("log_likelihood is no function", RUN, source("    def log_prior(",
             "    log_likelihood = 5\n\n    def log_prior(",
             "    log_likelihood = None\n\n    def log_prior("), word="log_likelihood"),
    Mutation("no log_likelihood", USE, source("def log_likelihood(", "def other("), word="log_likelihood"),
    Mutation("gradient of the wrong shape", "gradients", gradient("(rows - theta).sum(axis=1)",
             "(rows - theta).T",
             "(rows - theta)[:, :1]", "(rows - theta)[:-1]", "(rows - theta).sum(axis=0)", "0.0", "None",
             "(rows - theta) + 0j", "(rows - theta)[:, :, None]", "(rows - theta).astype(str)"),
             word="log_likelihood_gradient"),
    Mutation("gradient that raises", "gradients", gradient("1 / 0", "self.nope", "int('a')", "exit()")),
    Mutation("gradient NaN", "gradients", gradient("(rows - theta) * np.nan", "np.full(rows.shape, np.inf)"),
             None),
    Mutation("no gradient", "gradients", source("def log_likelihood_gradient", "def other"), word="gradient"),
    Mutation("prior NaN", RUN, source("return -0.005 *", "return np.nan *", "return np.inf *"),
             word="log_prior"),
    Mutation("prior of the wrong kind", RUN, source("return -0.005 * (theta**2).sum()", "return theta",
             "return None",
             "return 'a'", "return 1j", "return [0.0, 0.0]", "return np.zeros((2, 2))", "return {}"),
             word="log_prior"),
    Mutation("prior that raises", RUN, source("return -0.005 *", "return 1 / 0 *", "return self.nope *",
             "raise SystemExit(0) #")),
    Mutation("prior is no function", RUN, source("    def log_prior_gradient",
             "    log_prior = 5\n\n    def log_prior_gradient"),
             word="log_prior"),
    Mutation("prior's gradient of the wrong kind", "gradients", source("return -0.01 * theta",
             "return [1, 2, 3]", "return 'a'", "return 1 / 0", "return None", "theta[5] = 1",
             "return 1j * theta", "return theta.sum()", "return np.outer(theta, theta)"),
             word="log_prior_gradient"),
    Mutation("prior's gradient of other arguments", USE, source("log_prior_gradient(self, theta)",
             "log_prior_gradient(self, theta, out)", "log_prior_gradient(self)"), word="log_prior_gradient"),
    Mutation("dimension of the wrong kind", USE, source("dimension = 2", "dimension = 0", "dimension = -1",
             "dimension = '2'", "dimension = 2.5", "dimension = None", "dimension = float('nan')",
             "dimension = [2]",
             "dimension = 10**22", "dimension = lambda self: 2"), word="dimension"),
    Mutation("another dimension than true_theta", USE, source("dimension = 2", "dimension = 3",
             "dimension = 1")),
    Mutation("no dimension", USE, source("dimension = 2", "pass"), word="dimension"),
    Mutation("columns of the wrong kind", "mine rows", source("columns = 2", "columns = 3", "columns = 0",
             "columns = 'x'", "columns = -2", "columns = [2]"), word="column"),
    Mutation("n of the wrong kind", "data", source("n = 20", "n = 0", "n = -5", "n = 'many'", "n = 1.5",
             "n = None",
             "n = [20]", "n = float('nan')"), word="n"),
    Mutation("n of 23 digits", "data budget", source("n = 20", "n = 10**22"), None),
    Mutation("temperature of the wrong kind", "mine data rows", source("    columns = 2\n", *(
        f"    tempering = {value}\n" for value in ("-1", "0", "float('nan')", "float('inf')", "'x'", "[1]",
             "1j"))),
        word="tempering"),
    Mutation("true_theta of the wrong kind", USE, source("true_theta = np.array([1.0, -1.0])", *(
        f"true_theta = {value}" for value in ("np.zeros(3)", "np.zeros((2, 2))", "5", "'ab'", "None",
             "[1, None]",
        "np.array([1.0, np.nan])", "[1j, 0]", "{}", "[]", "['a', 'b']"))), word="true_theta"),
    Mutation("start of the wrong kind", "mine data rows", source("    columns = 2\n", *(
        f"    start = {value}\n" for value in ("np.zeros(3)", "[1.0]", "'ab'", "[1.0, float('nan')]",
             "np.zeros((2, 2))",
        "[1j, 0]", "{}", "[]"))), word="start"),
    Mutation("simulated rows of the wrong shape", "data", source(
             "return theta + generator.standard_normal((n, 2))", *(
        f"return {value}" for value in ("np.zeros(n)", "np.zeros((n, 3))", "np.zeros((0, 2))",
             "np.zeros((n, 2, 2))",
        "np.full((n, 2), np.nan)", "'rows'", "np.zeros((n, 2)) + 1j", "np.full((n, 2), 'a')", "None", "[]",
             "0", "1 / 0", "np.zeros((n - 1, 2))")))),
    Mutation("posterior of the wrong kind", "data rows", source("    columns = 2\n", *(
             f"    {text}\n" for text in (
        "posterior = 5", "def posterior(self, rows, temperature): return None", "posterior = None",
        "def posterior(self, rows): return self", "def posterior(self, rows, temperature): return 1 / 0"))),
             word="posterior"),
    Mutation("raises on import", USE, source("import numpy as np", *(
             f"import numpy as np\n{text}" for text in (
        "raise RuntimeError('no')", "1 / 0", "assert False", "nope", "[][0]", "{}['a']",
             "raise Exception('a\\nb')",
        "import nope", "class Broken(", "raise OSError(2, 'no')", "raise NotImplementedError",
             "raise RecursionError"))),
        word="own"),
    Mutation("leaves on import", USE, source("import numpy as np", "import sys; sys.exit(0)",
             "raise SystemExit",
             "import sys; sys.exit('bye')", "raise SystemExit(2)", "exit()"), word="own"),
    Mutation("raises in __init__", USE, source("    columns = 2\n", *(
             f"    def __init__(self): {text}\n" for text in (
        "1 / 0", "raise SystemExit(0)", "raise RuntimeError", "self.nope", "[][0]",
             "raise Exception('no')"))), word="own"),
    Mutation("__init__ with arguments", USE, source("    columns = 2\n",
             "    def __init__(self, n): pass\n"), word="own"),
    Mutation("no class of this name", USE, name("own:Nope", "own:np", "own:", "own:Normal:x", "own:Normal.x",
             "own: Normal",
             "own:__name__"), word="own"),
    Mutation("no module of this name", USE, name("nope:Normal", ":Normal", "..own:Normal", ".own:Normal",
             "own.py:Normal",
             "./own:Normal", "nope.own:Normal", "é:Normal", " :Normal")),
    Mutation("no text", USE, text("own.py", lambda t, rng: rng.choice([b"\xff\xfe", b"\0", "", "5",
             b"\x80class Normal:"])),
             word="own"),
]  # fmt: skip
