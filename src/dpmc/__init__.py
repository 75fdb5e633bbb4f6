"""Differentially private Markov chain Monte Carlo: samplers, accounting, evaluation."""

__version__ = "0.1.0"
