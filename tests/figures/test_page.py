"""The page of a study: it needs no other file, lists its contents, and compares with published results."""

import html
import re
import subprocess
import sys
from pathlib import Path

from dpmc.reports.plots import plot
from dpmc.studies.figures import declared_figure
from figures.synthetic import metrics, write_small

ROOT = Path(__file__).parents[2]
COMPARISON = """model,method,epsilon,metric,chains,median,published,error,z
flat-banana-2d,dp-penalty,1,mmd,20,0.5,0.4,0.02,5
flat-banana-2d,dp-hmc,1,mmd,20,0.41,0.4,0.02,0.5
flat-banana-2d,dp-hmc,1,acceptance_rate,20,0.6,0.61,0.02,-0.5
"""
TAGS = re.compile("<[^>]+>")


def test_the_page_is_self_contained_and_compares_with_published_results(tmp_path: Path) -> None:
    of = write_small(tmp_path)
    metrics(of).assign(study="one").to_csv(tmp_path / "metrics.csv", index=False)
    (tmp_path / "comparison.csv").write_text(COMPARISON)
    plot("mmd-easy", of, [tmp_path / "metrics.csv"], [tmp_path / "mmd-easy.png"])
    command = [sys.executable, str(ROOT / "workflow/scripts/page.py"), "one", "page.html"]
    subprocess.run([*command, "mmd-easy.png", "comparison.csv"], cwd=tmp_path, check=True)
    page = (tmp_path / "page.html").read_text()
    (picture,) = re.findall('src="([^"]+)"', page)
    assert picture.startswith("data:image/png;base64,iVBOR")
    anchors = re.findall('id="([^"]+)"', page)
    assert anchors == ["mmd-easy", "published", "models", "hyperparameters"]
    files = ["mmd-easy.pdf", "models.csv", "hyperparameters.csv"]
    assert re.findall('href="([^"]+)"', page) == [*(f"#{anchor}" for anchor in anchors), *files]
    assert html.escape(declared_figure(ROOT / "config/studies/thesis.yaml", "mmd-easy").caption[:60]) in page
    assert "a page &amp; its figures" in page and "2 of 3 medians agree within 3 standard errors." in page
    first = page.partition("MMD, all cells")[2].split("<tr>")[1].partition("</tr>")[0]
    values = ["flat banana, d = 2", "DP penalty", "1", "0.5", "0.4", "0.02", "5"]
    assert [TAGS.sub("", line).strip() for line in first.split("\n") if "<td>" in line] == values
