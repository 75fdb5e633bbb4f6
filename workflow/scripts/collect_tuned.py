"""Print the results of a study's searches in the form of config/hyperparameters/<study>.tuned.yaml.

    python workflow/scripts/collect_tuned.py results/<study>/search/<model>/<method>.yaml ... > tuned.yaml

A comment compares each setting with the pinned one, on seeds that no trial used.
"""

import sys
from pathlib import Path
from typing import Any

from dpmc.studies import read_yaml


def main() -> None:
    """Print the settings, method by method."""
    methods: dict[str, list[dict[str, Any]]] = {}
    for name in sys.argv[1:]:
        found = read_yaml(Path(name))
        methods.setdefault(found["method"], []).append(found)
    print("# Hyperparameters found by search, on tuning data: `make tune` writes this file anew as")
    print(
        "# results/<study>/tuned.yaml. Beside each: median MMD there, of this setting and of the pinned one."
    )
    for method, results in methods.items():
        print(f"\n{method}:")
        for found in results:
            values = ", ".join(f"{key}: {value}" for key, value in found["hyperparameters"].items())
            search = found["search"]
            chosen, pinned = (search[which].get("mmd", float("nan")) for which in ("chosen", "pinned"))
            edge = f"; on the edge: {', '.join(search['at_bound'])}" if search["at_bound"] else ""
            print(f"  {found['model']}: {{{values}}}  # {chosen:.3f}, {pinned:.3f}{edge}")


if __name__ == "__main__":
    main()
