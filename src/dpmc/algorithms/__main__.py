"""Print every algorithm with its hyperparameters as Markdown, for docs/reference/hyperparameters.md."""

import inspect

from dpmc.algorithms import ALGORITHMS, algorithm_class
from dpmc.algorithms.hyperparameters import describe


def page() -> str:
    """Return the page as Markdown."""
    parts = [
        "# Algorithms and their hyperparameters\n\n"
        "Made by `python -m dpmc.algorithms` from the declarations in `src/dpmc/algorithms/`. In brackets:\n"
        "what a value must be, and its default. [Algorithms](algorithms/index.md) says what each does.\n"
    ]
    seen: dict[str, str] = {}  # list -> the first algorithm that has it
    for name in ALGORITHMS:
        cls = algorithm_class(name)
        text = str(inspect.getdoc(cls)).partition("\n\n")[0]
        lines = [
            f"- `{key}`: {meaning} ({rule}{f'; default {default}' if default else ''})"
            for key, meaning, rule, default in describe(cls)
        ]
        entries = "\n".join(lines)
        first = seen.setdefault(entries, name)
        shown = entries if first == name else f"Hyperparameters are those of [`{first}`](#{first})."
        parts.append(f"\n## `{name}`\n\n{text}\n\n{shown}\n")
    return "".join(parts)


if __name__ == "__main__":
    print(page(), end="")
