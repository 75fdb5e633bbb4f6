"""The page of a study: it needs no other file, lists its contents, and compares with published results."""

import html
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from dpmc.reports.plots import plot
from dpmc.studies.figures import declared_figure
from figures.synthetic import metrics, study

ROOT = Path(__file__).parents[2]
MODEL = "flat-banana-2d"
STUDY = {
    "title": "a page & its figures",
    "delta": "0.1/n",
    "seeds": 20,
    "settings_of": "thesis",
    "models": {MODEL: {"epsilons": [1, 2, 3, 4, 5, 6], "tuning_epsilon": 1}},
    "methods": {"dp-penalty": {}, "dp-penalty-guided": {}, "dp-hmc": {}},
    "figures": ["mmd-easy", "models", "hyperparameters"],
}
COMPARISON = """model,method,epsilon,metric,chains,median,published,error,z
flat-banana-2d,dp-penalty,1,mmd,20,0.5,0.4,0.02,5
flat-banana-2d,dp-hmc,1,mmd,20,0.41,0.4,0.02,0.5
flat-banana-2d,dp-hmc,1,acceptance_rate,20,0.6,0.61,0.02,-0.5
"""


TAGS = re.compile("<[^>]+>")


def page_with(folder: Path, comparison: str) -> str:
    """The page of a small study with this comparison."""
    (folder / "config/studies").mkdir(parents=True)
    shutil.copytree(ROOT / "config/hyperparameters", folder / "config/hyperparameters")
    (folder / "config/studies/one.yaml").write_text(yaml.safe_dump(STUDY))
    metrics(study((MODEL,))).to_csv(folder / "metrics.csv", index=False)
    picture = folder / "mmd-easy.png"
    plot("mmd-easy", study((MODEL,)), [folder / "metrics.csv"], ROOT / "data/published", [picture])
    (folder / "comparison.csv").write_text(comparison)
    command = [sys.executable, str(ROOT / "workflow/scripts/page.py"), "one", "page.html"]
    subprocess.run([*command, picture.name, "comparison.csv"], cwd=folder, check=True)
    return (folder / "page.html").read_text()


def test_the_page_is_self_contained_and_compares_with_published_results(tmp_path: Path) -> None:
    page = page_with(tmp_path, COMPARISON)
    (picture,) = re.findall('src="([^"]+)"', page)
    assert picture.startswith("data:image/png;base64,iVBOR")
    anchors = re.findall('id="([^"]+)"', page)
    assert anchors == ["mmd-easy", "published", "models", "hyperparameters"]
    assert re.findall('href="([^"]+)"', page) == [*(f"#{anchor}" for anchor in anchors), "mmd-easy.pdf"]
    assert html.escape(declared_figure(ROOT / "config/studies/thesis.yaml", "mmd-easy").caption[:60]) in page
    assert "a page &amp; its figures" in page and "2 of 3 medians agree within 3 standard errors." in page
    (beyond,) = re.findall('<tr class="?beyond"?>(.*?)</tr>', page, re.DOTALL)
    values = ["flat banana, d = 2", "DP penalty", "1", "0.5", "0.4", "0.02", "+5.00"]
    assert TAGS.sub("|", beyond).replace("\n", "").strip("|").split("||") == values


def test_without_a_published_cell_there_is_no_comparison(tmp_path: Path) -> None:
    """A small study called as a published one ended with a traceback: the fewest chains of none are NaN."""
    page = page_with(tmp_path, COMPARISON.splitlines()[0])
    assert re.findall('id="([^"]+)"', page) == ["mmd-easy", "models", "hyperparameters"]
