"""The names of all metrics."""

import re

#: of metrics.csv and of the tables along chains
METRICS = (
    *("mmd", "mean_error", "covariance_error", "symmetric_kl", "outside_fraction", "test_accuracy"),
    *("acceptance_rate", "ratio_clip_fraction", "gradient_clip_fraction", "noise_fraction"),
    *("full_batch_fraction", "rows_per_iteration", "rows_used", "iterations", "kept_draws", "diverged"),
    *("rhat_max", "ess_bulk_min", "mcse_mean_max", "budget_iterations"),
    *("epsilon_spent", "epsilon_spent_tight", "epsilon_total"),
)
TEXTS = ("status", "variant")  #: in metrics.csv beside them, with a text as value
MILESTONES = re.compile(r"symmetric_kl_(at_\d+|by_\d+_rows)")


def is_metric(name: str) -> bool:
    """Return whether there is a metric of this name."""
    return name in METRICS or MILESTONES.fullmatch(name) is not None
