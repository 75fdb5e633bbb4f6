"""The version of dpmc."""

import subprocess

from dpmc.common.shipped import shipped

__version__ = "0.1.0"


def made_by() -> str:
    """Return "dpmc <version>", with the commit of a clone, and whether its files differ from it."""
    try:
        git = ["git", "-C", str(shipped()), "describe", "--always", "--dirty", "--exclude=*"]
        said = subprocess.run(git, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return f"dpmc {__version__}"
    cloned = said.returncode == 0 and shipped(".git").exists()
    return f"dpmc {__version__}" + (f", commit {said.stdout.strip()}" if cloned else "")
