"""Links in the pages that GitHub renders: every file and heading that they name is there. No network."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpmc.cli.options import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(page for page in ROOT.glob("docs/**/*.md") if ROOT / "docs/_build" not in page.parents),
        *(ROOT / folder / "README.md" for folder in ("config", "data/published", "src/dpmc/template")),
    ]
)
FENCE = re.compile(r"^( *)(```+|~~~+).*?^\1\2[ ]*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
LINK = re.compile(r"\]\(\s*([^)\s]+)\s*\)|^ {0,3}\[[^\]]+\]:\s*(\S+)|(?:src|href)=\"([^\"]+)\"", re.MULTILINE)
HEADING = re.compile(r"^#{1,6} +(.+?)(?: +#+)?$", re.MULTILINE)


def prose(text: str) -> str:
    """A page without code, in which brackets are no links."""
    return CODE.sub("``", FENCE.sub("", text))


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives headings: letters, digits, - and _; a number where one repeats."""
    seen: Counter[str] = Counter()
    found = set()
    for heading in HEADING.findall(FENCE.sub("", text)):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


def broken(page: Path) -> Iterator[str]:
    """Links of a page that lead nowhere."""
    text = page.read_text(encoding="utf-8")
    for match in LINK.finditer(prose(text)):
        link = next(filter(None, match.groups()))
        if re.match(r"[a-z]+:", link):  # another site's
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or ROOT not in target.parents:
            yield f"{link}: no such file"
        elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text(encoding="utf-8")):
            yield f"{link}: no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    assert list(broken(page)) == []


def test_broken_links_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "other.md").write_text("# A `b` c, d\n\n## Twice\n\n## Twice\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](other.md) [b](other.md#a-b-c-d) [c](other.md#twice-1) [d](https://example.org/x.md)\n"
        "`[e](gone.md)`\n```\n[f](gone.md)\n```\n"
        "[g](gone.md) ![h](gone.png) [i](other.md#twice-2) [j](../outside.md)\n[k]: gone.txt\n"
    )
    assert list(broken(page)) == [
        "gone.md: no such file",
        "gone.png: no such file",
        "other.md#twice-2: no such heading",
        "../outside.md: no such file",
        "gone.txt: no such file",
    ]


def test_every_command_has_a_section() -> None:
    text = (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8")
    for pattern in (r"^## `(.+)`$", r"^!dpmc (\w+) --help$"):
        assert re.findall(pattern, text, re.MULTILINE) == list(COMMANDS)


def test_the_site_lists_every_section() -> None:
    """A page outside of all lists would be a warning, which `make docs` does not pass."""
    folders = {page.parent.name for page in (ROOT / "docs").glob("*/index.md")}
    listed = re.findall(r"^(\S+)/index$", (ROOT / "docs/index.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(listed) == folders - {"gallery"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_line_break_changes_the_markup(page: Path) -> None:
    """The site's Markdown drops lines that begin with %, and a list marker ends a hidden comment."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    assert re.findall(r"^ *%.*", text, re.MULTILINE) == []
    lines = [
        line for comment in re.findall(r"<!--.*?-->", text, re.DOTALL) for line in comment.splitlines()[1:]
    ]
    assert [line for line in lines if re.match(r" *([-+*] |\d+[.)] |[#>|])", line)] == []
