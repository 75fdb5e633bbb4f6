"""Compare pictures and tables in docs/gallery/<study> with the current results.

    python docs/tools/check_gallery.py <study> ...

A picture is up to date if its stamp (`dpmc.reports.plots.stamp`) is the digest of the current results; a
table is compared with the one in figures/ or results/. Prints files that are outdated or missing, and exits
with 1 if there are any. A study without results is not checked.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from dpmc.common.errors import DpmcError
from dpmc.reports import plots
from dpmc.reports.plots import stamp
from dpmc.studies import Study, load_study

RESULTS = Path("results")


def outdated(study: Study, gallery: Path) -> Iterator[str]:
    """Yield a line for each file of a study's gallery that is outdated or missing, with the reason."""
    for picture in sorted(gallery.glob("*.png")):
        if picture.stem == "lessons":  # no stamp: it shows searches, whose files contain run times
            continue
        mark = stamp.read_stamp(picture)
        try:
            if not mark:
                yield f"{picture}: has no stamp"
            elif mark != stamp.digest_of_files(inputs(study, picture.stem)):
                yield f"{picture}: was drawn from other results"
        except DpmcError as error:
            yield f"{picture}: {error}"
    for text in sorted(file for ending in ("md", "csv") for file in gallery.glob(f"*.{ending}")):
        folders = (Path("figures") / study.name, RESULTS / study.name)
        made = next((folder / text.name for folder in folders if (folder / text.name).is_file()), None)
        if made is None or made.read_bytes() != text.read_bytes():
            yield f"{text}: differs from {made}" if made else f"{text}: is made by no run"
    for made in (Path("figures") / study.name / "search/lessons.png", RESULTS / study.name / "tuned.yaml"):
        copy = gallery / made.name  # of searches, which `make figures` does not run
        if made.is_file() and copy.is_file() and made.read_bytes() != copy.read_bytes():
            yield f"{copy}: differs from {made}"
    for made in sorted((Path("figures") / study.name).glob("*.png")):
        if not (gallery / made.name).is_file():
            yield f"{gallery / made.name}: is missing"


def inputs(study: Study, figure: str) -> list[Path]:
    """Return the files from which a figure is drawn."""
    metrics = plots.metric_files(study, plots.reads(figure, study)[0], RESULTS)
    return plots.figure_files(figure, study, metrics, RESULTS)


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
