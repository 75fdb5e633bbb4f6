"""Print every algorithm with its hyperparameters as Markdown, for docs/reference/hyperparameters.md."""

import inspect

from dpmc.algorithms import ALGORITHMS, algorithm_class
from dpmc.algorithms.hyperparameters import describe


def page() -> str:
    """Return the page as Markdown."""
    parts = [
        "# Algorithms and their hyperparameters\n\n"
        "Made by `python -m dpmc.algorithms` from the declarations in `src/dpmc/algorithms/`. What each\n"
        "algorithm does is on [its own page](algorithms/index.md).\n"
    ]
    seen: dict[str, str] = {}  # table -> the first algorithm that has it
    for name in ALGORITHMS:
        cls = algorithm_class(name)
        text = str(inspect.getdoc(cls)).partition("\n\n")[0]
        lines = ["| hyperparameter | meaning | must be | default |", "| --- | --- | --- | --- |"]
        for entry in describe(cls):
            key, meaning, rule, default = (part.replace("|", r"\|") for part in entry)
            lines.append(f"| `{key}` | {meaning} | {rule} | {default} |")
        table = "\n".join(lines)
        first = seen.setdefault(table, name)
        shown = table if first == name else f"Hyperparameters are those of [`{first}`](#{first})."
        parts.append(f"\n## `{name}`\n\n{text}\n\n{shown}\n")
    return "".join(parts)


if __name__ == "__main__":
    print(page(), end="")
