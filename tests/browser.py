"""Pages in headless Chromium, in frames as narrow as a phone: what their scripts tell."""

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
PHONE = 390  # pixels; a window is at least 500 wide, a frame is not


def chromium(page: str, *words: str, dark: bool = False) -> str:
    """Show the page of an address; return its document as text once it and its scripts are loaded."""
    colours = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    given = ["--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", colours]
    command = [str(CHROMIUM), *given, "--dump-dom", *words, page]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout


def told(page: Path, script: str, dark: bool = False) -> str:
    """Return the value of a script at the end of a page on a phone, as text."""
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace("</body>", f"<script>document.title = {script}</script></body>"), "utf-8")
    (title,) = of_each([page], "page.title", dark=dark)
    page.write_text(text, encoding="utf-8")
    return title


def of_each(pages: Iterable[Path], value: str, width: int = PHONE, dark: bool = False) -> list[str]:
    """Return the value of an expression of `page`, a document, for pages of a folder in frames of a width."""
    pages = list(pages)
    frame = pages[0].with_name("frame.html")
    paths = [page.relative_to(frame.parent) for page in pages]
    show = f"[...document.querySelectorAll('iframe')].map(({{contentDocument: page}}) => {value})"
    frame.write_text(
        "".join(f'<iframe src="{path}" width="{width}" height="800"></iframe>' for path in paths)
        + f"<script>onload = () => {{ document.body.innerText = {show}.join('|') }}</script>"
    )
    shown = chromium(frame.as_uri(), dark=dark)
    frame.unlink()
    return shown.partition("<body>")[2].partition("</body>")[0].strip().split("|")
