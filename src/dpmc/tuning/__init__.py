"""Hyperparameters: searches on public rows, their trials, and trials of pinned values."""

#: Why hyperparameters must not be chosen on private rows, for errors and warnings.
LEAK = "hyperparameters chosen on private rows reveal information about them that no epsilon covers"
