"""Compare the current code's chains with those of commit b8c4588 (tests/oracle/chains.npz), by sampler.

    python benchmarks/agreement.py [WORD ...]        # cells whose name contains one of the words; default:
    all

Samplers without trajectories run whole chains. Trajectories amplify rounding differences, so these samplers
run single iterations from known positions. SGNHT, whose momentum is unknown, runs 30 iterations.
"""

import sys

from measuring import ROOT, table

sys.path.insert(0, str(ROOT / "tests"))

from dpmc.studies import load_study
from oracle import chains, replay


def main() -> None:
    """Print a row for each sampler and way of comparing."""
    words, known = sys.argv[1:], chains.read()
    found: dict[tuple[str, str], list[replay.Compared]] = {}
    for name in (name for name in known if not words or any(word in name for word in words)):
        one = replay.compare(name, known[name])
        study, _, method, _ = name.split("/")
        found.setdefault((load_study(study).method(method).algorithm, one.how), []).append(one)
    rows = [
        [
            *(*key, len(those), sum(one.iterations for one in those), sum(one.decisions for one in those)),
            f"{max(one.difference for one in those):.0e}",
        ]
        for key, those in sorted(found.items())
    ]
    header = ("sampler", "iterations", "cells", "compared", "other decisions", "largest Δθ, posterior sd")
    table(header, rows)


if __name__ == "__main__":
    main()
