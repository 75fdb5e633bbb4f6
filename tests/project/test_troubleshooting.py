"""Messages that docs/how-to/troubleshooting.md explains are those of the code."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/how-to/troubleshooting.md"
SHORTEST = 6  #: characters of a piece that is looked for


@cache
def texts() -> str:
    """Return all texts in the code, with … for inserted values."""
    found = []
    for path in (ROOT / "src/dpmc").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else "…" for part in node.values]
                found.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return "\n".join(found)


def messages() -> list[str]:
    """First cells of the page's tables."""
    return re.findall(r"^\| `([^`]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def test_at_least_40_messages_are_on_the_page() -> None:
    assert len(messages()) >= 40


@pytest.mark.parametrize("message", messages())
def test_every_message_occurs_in_the_code(message: str) -> None:
    pieces = [piece.strip(" :;,.()") for piece in message.split("…")]
    wanted = [piece for piece in pieces if len(piece) >= SHORTEST]
    assert wanted
    assert [piece for piece in wanted if piece not in texts()] == []
