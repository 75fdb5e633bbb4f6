"""Two classes of pictures for logistic regression: 7 against 9, as in Section 6 of the DP-Fast MH paper.

A row is a label, 1 for the second class, and the picture (pixel / 255) in the first 50 principal components:
centred, not whitened, no intercept, clipped to a public norm. The paper fits centre and components on the
private rows themselves, which its guarantee does not cover. Here they are fitted on the eight other classes,
which are public. Data sets whose name ends in `-own` are fitted as in the paper, and have a caveat.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg

from dpmc.common.errors import DpmcError
from dpmc.common.streams import stream
from dpmc.data import idx, sources

Floats = npt.NDArray[np.float64]
Pictures = npt.NDArray[np.uint8]  # (n, pixels)

COMPONENTS = 50
LARGEST_PIXEL = 255.0
BLOCK = 4096  # pictures converted to floating point at once
OWN, TUNING = "-own", "-tuning"
NAMES = tuple(f"{name}{ending}" for name in sources.table()["sets"] for ending in ("", OWN))
PATTERN = "|".join(NAMES)
NOT_COVERED = "the projection was fitted on the private rows: the guarantee does not cover it"


@dataclass(frozen=True)
class ImageSet:
    """One data set of the table."""

    name: str
    base: str  # the name in the table
    source: sources.Source
    classes: tuple[int, int]
    train: int  # rows
    test: int
    norm: float
    own: bool  # the projection is fitted on the private rows
    tuning: bool  # two of the public classes in place of the private ones


class Rows(NamedTuple):
    """Rows (label, x) for inference and for testing."""

    train: Floats  # (n, 1 + 50)
    test: Floats  # (m, 1 + 50)


def image_set(name: str) -> ImageSet | None:
    """Return a data set by name, `<set>[-own][-tuning]`; None for a name that is not one of these."""
    base, tuning = name.removesuffix(TUNING), name.endswith(TUNING)
    base, own = base.removesuffix(OWN), base.endswith(OWN)
    entry = sources.table()["sets"].get(base)
    if entry is None:
        return None
    first, second = entry["tuning" if tuning else "classes"]
    return ImageSet(
        name=name,
        base=base,
        source=sources.source(entry["source"]),
        classes=(first, second),
        train=entry["train"],
        test=entry["test"],
        norm=float(entry["norm"]),
        own=own,
        tuning=tuning,
    )


def missing(dataset: str, root: Path = sources.DOWNLOADS) -> str | None:
    """Return the reason why an image data set is unavailable, in one line; None otherwise."""
    wanted = image_set(dataset)
    return sources.missing(wanted.source, root) if wanted else None


def build(wanted: ImageSet, root: Path = sources.DOWNLOADS) -> Rows:
    """Return the rows of a data set.

    Raises DpmcError for files that are missing or wrong, or have other numbers of rows than in the table.
    """
    train, labels, test, test_labels = _pictures(wanted.source, root)
    private = np.isin(labels, sources.table()["sets"][wanted.base]["classes"])
    centre, components = principal_components(train[private if wanted.own else ~private], COMPONENTS)

    def rows(pictures: Pictures, labels: npt.NDArray[np.uint8]) -> Floats:
        own = np.isin(labels, wanted.classes)
        x = clipped((pictures[own] / LARGEST_PIXEL - centre) @ components, wanted.norm)
        return np.column_stack([labels[own] == wanted.classes[1], x])

    chosen = rows(train, labels)
    if len(test) == 0:  # no separate test pictures: the last rows in a random order
        chosen = stream("split", wanted.base, *wanted.classes).permutation(chosen)
        chosen, tested = chosen[: wanted.train], chosen[wanted.train :]
    else:
        tested = rows(test, test_labels)
    if not wanted.tuning and (len(chosen), len(tested)) != (wanted.train, wanted.test):
        raise DpmcError(
            f"{root / wanted.source.name}: {len(chosen)} and {len(tested)} pictures of the classes "
            f"{wanted.classes[0]} and {wanted.classes[1]}, {wanted.name} has {wanted.train} and {wanted.test}"
        )
    return Rows(chosen, tested)


def principal_components(pictures: Pictures, number: int) -> tuple[Floats, Floats]:
    """Return the mean (p,) and the first principal components (p, number) of pictures (n, p).

    Pixels are divided by 255. Sums of pixels and of their products are whole numbers below 2⁵³, hence
    exact in any order; only the eigenvectors are rounded. The sign of each makes its largest entry positive.
    """
    n, p = pictures.shape
    total, products = np.zeros(p), np.zeros((p, p))
    for at in range(0, n, BLOCK):
        block = pictures[at : at + BLOCK].astype(float)
        total += block.sum(axis=0)
        products += block.T @ block
    mean = total / n
    covariance = (products / n - np.outer(mean, mean)) / LARGEST_PIXEL**2
    _, vectors = scipy.linalg.eigh(covariance, subset_by_index=(p - number, p - 1))
    vectors = vectors[:, ::-1]
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(number)]
    return mean / LARGEST_PIXEL, vectors * np.sign(largest)


def clipped(x: Floats, norm: float) -> Floats:
    """Return rows (n, d) scaled down to at most `norm`."""
    norms = np.linalg.norm(x, axis=1, keepdims=True)
    shortened: Floats = x * (norm / np.maximum(norms, norm))
    return shortened


def _pictures(
    source: sources.Source, root: Path
) -> tuple[Pictures, npt.NDArray[np.uint8], Pictures, npt.NDArray[np.uint8]]:
    """Return pictures (n, pixels) and labels (n,) for training, then for testing, empty if there are none."""
    folder = root / source.name
    files = sources.contents(source, root)
    arrays = {name: idx.parse(raw, str(folder / name)) for name, raw in files.items()}
    parts: list[npt.NDArray[np.uint8]] = []
    for part in ("train", "t10k"):
        if f"{part}-images-idx3-ubyte" not in arrays:
            parts += [np.empty((0, parts[0].shape[1]), np.uint8), np.empty(0, np.uint8)]
            continue
        images, labels = arrays[f"{part}-images-idx3-ubyte"], arrays[f"{part}-labels-idx1-ubyte"]
        if images.ndim != 3 or labels.ndim != 1 or len(images) != len(labels) or images.dtype != np.uint8:
            raise DpmcError(
                f"{folder}: {part}: images {images.shape} and labels {labels.shape} do not fit "
                "together; must be (n, height, width) of unsigned bytes and (n,)"
            )
        parts += [images.reshape(len(images), -1), labels]
    return parts[0], parts[1], parts[2], parts[3]
