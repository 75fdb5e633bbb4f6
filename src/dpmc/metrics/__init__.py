"""Metrics: distance of chains from the exact posterior, convergence, clipping and spending."""
