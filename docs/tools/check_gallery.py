"""Compare pictures and tables in docs/gallery/<study> with those of the last run.

    python docs/tools/check_gallery.py <study> ...

A picture is compared by its pixels with the one in figures/; a table by its text with the one in figures/ or
results/. Prints files that are outdated or missing, and exits with 1 if there are any. A study without
results is not checked.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from matplotlib.image import imread

from dpmc.studies import Study, load_study

RESULTS = Path("results")


def outdated(study: Study, gallery: Path) -> Iterator[str]:
    """Yield a line for each file of a study's gallery that is outdated or missing, with the reason."""
    for copy in sorted(file for ending in ("png", "md", "csv") for file in gallery.glob(f"*.{ending}")):
        if copy.stem == "lessons":  # below
            continue
        folders = (Path("figures") / study.name, RESULTS / study.name)
        made = next((folder / copy.name for folder in folders if (folder / copy.name).is_file()), None)
        if made is None or not same(made, copy):
            yield f"{copy}: differs from {made}" if made else f"{copy}: is made by no run"
    for made in (Path("figures") / study.name / "search/lessons.png", RESULTS / study.name / "tuned.yaml"):
        copy = gallery / made.name  # of searches, which `make figures` does not run
        if made.is_file() and copy.is_file() and made.read_bytes() != copy.read_bytes():
            yield f"{copy}: differs from {made}"
    for made in sorted((Path("figures") / study.name).glob("*.png")):
        if not (gallery / made.name).is_file():
            yield f"{gallery / made.name}: is missing"


def same(made: Path, copy: Path) -> bool:
    """Return whether two files show the same: pictures may differ in what they say about their making."""
    return made.read_bytes() == copy.read_bytes() or (
        made.suffix == ".png" and np.array_equal(imread(made), imread(copy))
    )


def main() -> int:
    """Print what is out of date; return 1 if anything is."""
    stale = 0
    for name in sys.argv[1:]:
        study = load_study(name)
        if not (RESULTS / study.name / "metrics.csv").is_file():
            print(f"{name}: not checked, there are no results of it here")
            continue
        for line in outdated(study, Path("docs/gallery") / study.name):
            stale += 1
            print(line)
    return int(stale > 0)


if __name__ == "__main__":
    sys.exit(main())
