"""Hyperparameters: searches on public rows, their trials, and trials of pinned values."""
