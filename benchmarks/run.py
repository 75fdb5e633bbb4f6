"""All benchmarks, or some: tables in Markdown, results/*.csv beside this file, figures in docs/.

    python benchmarks/run.py [--only core evaluators growth agreement study] [--study thesis] [--quick]

Times are CPU times of one core, the best of several rounds; they hold to about a tenth on a quiet machine.
"""

import argparse
import os
import sys
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: one core is what is measured
os.environ.setdefault("OMP_NUM_THREADS", "1")

PARTS = ("core", "evaluators", "growth", "agreement", "study")


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--study", default="thesis")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, shorter chains")
    parser.add_argument("--folder", default=".", help="where the study's results/ lie; default: here")
    parser.add_argument("--cpu", type=float, help="study: CPU seconds of the whole run, user + system")
    parser.add_argument("--cores", type=int, default=os.cpu_count(), help="study: of the run; default: all")
    options = parser.parse_args()
    from dpmc.studies import load_study

    study = load_study(options.study)
    for part in options.only:
        began = time.perf_counter()
        if part == "core":
            import core

            core.main()
        elif part == "evaluators":
            import evaluators

            evaluators.main(study)
        elif part == "growth":
            import growth

            growth.main(options.quick)
        elif part == "agreement":
            import agreement

            agreement.main(study, options.quick)
        elif part == "study":
            import pipeline

            pipeline.main(study, options.folder, options.cpu, options.cores)
        print(f"\n({part}: {time.perf_counter() - began:.0f} s)", file=sys.stderr)


if __name__ == "__main__":
    main()
