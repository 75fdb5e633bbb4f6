"""Metrics: how far chains are from the exact posterior, how they mixed, and what was clipped."""
