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
    seen: dict[str, dict[str, str]] = {}  # algorithm -> hyperparameter -> its line
    for name in ALGORITHMS:
        cls = algorithm_class(name)
        text = str(inspect.getdoc(cls)).partition("\n\n")[0]
        lines = {
            key: f"- `{key}`: {meaning} ({rule}{f'; default {default}' if default else ''})"
            for key, meaning, rule, default in describe(cls)
        }
        # what is said of an earlier algorithm is not said again, if it is three hyperparameters or more
        same = {first: [key for key in lines if said.get(key) == lines[key]] for first, said in seen.items()}
        first = max(same, key=lambda other: len(same[other]), default=name)
        known = same[first] if seen and (len(same[first]) >= 3 or len(same[first]) == len(lines)) else []
        shown = [line for key, line in lines.items() if key not in known]
        if known:
            shown.append(f"- as of [`{first}`](#{first}): {', '.join(f'`{key}`' for key in known)}")
        parts.append(f"\n## `{name}`\n\n{text}\n\n" + "\n".join(shown) + "\n")
        seen[name] = lines
    return "".join(parts)


if __name__ == "__main__":
    print(page(), end="")
