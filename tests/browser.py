"""A page in headless Chromium, in a frame of 390 pixels: what its scripts tell in its title."""

import shutil
import subprocess
from pathlib import Path

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")


def told(page: Path, script: str, dark: bool = False) -> str:
    """Return the value of a script at the end of a page, as text."""
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace("</body>", f"<script>document.title = {script}</script></body>"), "utf-8")
    # A window is at least 500 pixels wide, a frame is not.
    frame = page.with_name("frame.html")
    show = "document.body.innerHTML = document.querySelector('iframe').contentDocument.title"
    frame.write_text(
        f'<iframe src="{page.name}" width="390" height="800"></iframe>'
        f"<script>onload = () => {{ {show} }}</script>"
    )
    colours = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    given = ["--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", colours]
    run = subprocess.run(
        [str(CHROMIUM), *given, "--dump-dom", frame.as_uri()],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    page.write_text(text, encoding="utf-8")
    return run.stdout.partition("<body>")[2].partition("</body>")[0]
