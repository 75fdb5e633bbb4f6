"""Made-up tables of the DP-Fast MH study; no results of anything."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from dpmc.metrics import traces
from dpmc.metrics.table import METRIC_COLUMNS
from dpmc.studies import Study, load_study

ROOT = Path(__file__).parents[2]
Values = Callable[[str, str, str, str], float | None]  # model, method, epsilon, metric
PLACES = ("", "_at_4000", "_at_10000", "_by_1000000_rows", "_by_50000000_rows")
METRICS = (
    *(f"{distance}{place}" for distance in ("mmd", "symmetric_kl") for place in PLACES),
    *(
        "mean_error",
        "rows_per_iteration",
        "full_batch_fraction",
        "acceptance_rate",
        "noise_fraction",
        "test_accuracy",
    ),
)


def real_study() -> Study:
    return load_study(ROOT / "config/studies/dp-fast-mh.yaml")


def metrics_of(study: Study, values: Values, seeds: int = 3) -> pd.DataFrame:
    rows = []
    for model, method, epsilon in study.cells():
        for metric in METRICS:
            value = values(model, method, epsilon, metric)
            if value is not None:
                for seed in range(seeds):
                    row = (study.name, model, method, epsilon, seed, metric, value)
                    rows.append(tuple(map(str, row)))
    return pd.DataFrame(rows, columns=[*METRIC_COLUMNS])


def write_tables(study: Study, results: Path, spent: Callable[[str, str], float]) -> None:
    """Traces of every model; `spent(method, epsilon)`: total ε of one iteration, inf for none."""
    for model in study.models:
        rows = []
        for cell_model, method, epsilon in study.cells():
            if cell_model != model:
                continue
            level = 1.0 + len(method) / 10.0
            for iteration in (1, 501, 1001, 2001):
                names = (study.name, model, method, epsilon)
                total = spent(method, epsilon) * iteration**0.5
                rows.append((*names, "", iteration, "epsilon_total", total))
                for seed in range(3):
                    one = (*names, seed, iteration)
                    rows.append((*one, "rows_used", 10 * iteration))
                    rows.append((*one, "symmetric_kl", level + seed + 20.0 / iteration))
                    rows.append((*one, "test_accuracy", 0.9 - 0.3 / iteration))
        path = results / study.name / "traces" / f"{model}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(rows, columns=list(traces.TRACE_COLUMNS)).to_csv(path, index=False)
