"""Print every algorithm with its hyperparameters as Markdown, for docs/reference/hyperparameters.md."""

import inspect

from dpmc.algorithms import ALGORITHMS, algorithm_class
from dpmc.algorithms.hyperparameters import describe


def page() -> str:
    """Return the page as Markdown."""
    parts = [
        "# Algorithms and their hyperparameters\n\n"
        "Made by `python -m dpmc.algorithms` from the declarations in `src/dpmc/algorithms/`.\n"
    ]
    for name in ALGORITHMS:
        cls = algorithm_class(name)
        text = inspect.getdoc(cls)
        table = ["| hyperparameter | meaning | must be | default |", "| --- | --- | --- | --- |"]
        for entry in describe(cls):
            key, meaning, rule, default = (part.replace("|", r"\|") for part in entry)
            table.append(f"| `{key}` | {meaning} | {rule} | {default} |")
        parts.append(f"\n## `{name}`\n\n{text}\n\n" + "\n".join(table) + "\n")
    return "".join(parts)


if __name__ == "__main__":
    print(page(), end="")
