"""Chains: the loop, the state of one run, cells and jobs."""
