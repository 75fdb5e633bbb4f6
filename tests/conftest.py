"""Make shared test modules and the scripts of pages and workflow importable: `from kernels import ladder`."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
sys.path[:0] = [
    str(TESTS),
    *(str(TESTS.parent / place) for place in ("docs/tools", "workflow/scripts", "config/studies")),
]


@pytest.fixture
def shown() -> Iterator[None]:
    """Messages on standard error, although pytest's handlers get them, too."""
    from dpmc.common.logs import on_standard_error

    with on_standard_error():
        yield
