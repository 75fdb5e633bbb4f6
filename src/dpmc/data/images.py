"""Two classes of pictures for logistic regression: 7 against 9, as in Section 6 of the DP-Fast MH paper.

A row is a label, 1 for the second class, and the picture (pixel / 255) in the first 50 principal components:
centred, not whitened, no intercept, clipped to a public norm. The paper fits centre and components on the
private rows themselves, which its guarantee does not cover. Here they are fitted on the eight other classes,
which are public.
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg

from dpmc.common.errors import DpmcError
from dpmc.common.streams import stream
from dpmc.common.threefry import Floats
from dpmc.data import idx, sources

COMPONENTS = 50
LARGEST_PIXEL = 255.0
PICTURES_AT_ONCE = 4096  # pictures converted to floating point at once
TUNING = "-tuning"
NAMES = tuple(sources.source_table()["sets"])
PATTERN = "|".join(NAMES)


class ImageSet(NamedTuple):
    """One data set of the table."""

    name: str
    base: str  # the name in the table
    source: sources.Source
    classes: list[int]  # two
    private: list[int]  # the two classes on which the projection is not fitted
    sizes: tuple[int, int]  # rows for inference and for testing; of tuning any number
    norm: float


def image_set(name: str) -> ImageSet | None:
    """Return `<set>[-tuning]` by name, of tuning data two public classes for the private ones; else None."""
    base = name.removesuffix(TUNING)
    entry = sources.source_table()["sets"].get(base)
    if entry is None:
        return None
    classes, sizes = entry["classes" if name == base else "tuning"], (entry["train"], entry["test"])
    source, norm = sources.source(entry["source"]), float(entry["norm"])
    return ImageSet(name, base, source, classes, entry["classes"], sizes, norm)


def why_missing(dataset: str) -> str | None:
    """Return the reason why an image data set is unavailable, in one line; None otherwise."""
    wanted = image_set(dataset)
    return sources.why_unavailable(wanted.source) if wanted else None


def build_rows(wanted: ImageSet) -> tuple[Floats, Floats]:
    """Return rows (label, x) for inference (n, 1 + 50) and testing (m, 1 + 50); DpmcError for wrong files."""
    train, labels, test, test_labels = _pictures(wanted.source)
    public = train[~np.isin(labels, wanted.private)]
    centre, components = principal_components(public, COMPONENTS)

    def rows(pictures: idx.Bytes, labels: idx.Bytes) -> Floats:
        chosen = np.isin(labels, wanted.classes)
        x = (pictures[chosen] / LARGEST_PIXEL - centre) @ components
        norms = np.linalg.norm(x, axis=1, keepdims=True)
        # Shorter rows are multiplied by 1.
        x *= wanted.norm / np.maximum(norms, wanted.norm)
        return np.column_stack([labels[chosen] == wanted.classes[1], x])

    chosen = rows(train, labels)
    if len(test) == 0:  # no separate test pictures: the last rows in a random order
        chosen = stream("split", wanted.base, *wanted.classes).permutation(chosen)
        chosen, tested = np.split(chosen, wanted.sizes[:1])
    else:
        tested = rows(test, test_labels)
    sizes = (len(chosen), len(tested))
    if wanted.classes == wanted.private and sizes != wanted.sizes:
        raise DpmcError(
            f"{wanted.source.name}: {sizes} pictures of the classes {wanted.classes} to learn from and to "
            f"test, {wanted.name} has {wanted.sizes}"
        )
    return chosen, tested


def principal_components(pictures: idx.Bytes, number: int) -> tuple[Floats, Floats]:
    """Return the mean (p,) and the first principal components (p, number) of pictures (n, p), pixel / 255.

    Sums of pixels and of their products are whole numbers below 2⁵³, hence exact in any order. The sign of
    each component makes its largest entry positive.
    """
    n, p = pictures.shape
    total, products = np.zeros(p), np.zeros((p, p))
    for at in range(0, n, PICTURES_AT_ONCE):
        block = pictures[at : at + PICTURES_AT_ONCE].astype(float)
        total += block.sum(axis=0)
        products += block.T @ block
    mean = total / n
    covariance = (products / n - np.outer(mean, mean)) / LARGEST_PIXEL**2
    _, vectors = scipy.linalg.eigh(covariance, subset_by_index=(p - number, p - 1))
    # `eigh` returns eigenvalues in ascending order.
    vectors = vectors[:, ::-1]
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(number)]
    return mean / LARGEST_PIXEL, vectors * np.sign(largest)


def _pictures(source: sources.Source) -> list[idx.Bytes]:
    """Return pictures (n, pixels) and labels (n,) for training, then for testing, empty if there are none."""
    files = sources.unpacked_files(source)
    parts: list[idx.Bytes] = []
    for part in ("train", "t10k"):
        if f"{part}-images-idx3-ubyte" not in files:
            parts += [parts[0][:0], parts[1][:0]]
            continue
        names = (f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte")
        images, labels = (idx.parse(files[name], f"{source.name}: {name}") for name in names)
        if images.ndim != 3 or labels.shape != images.shape[:1]:
            shapes = f"images {images.shape} and labels {labels.shape}"
            raise DpmcError(f"{source.name}: {part}: {shapes} must be (n, height, width) and (n,)")
        parts += [images.reshape(len(images), -1), labels]
    return parts
