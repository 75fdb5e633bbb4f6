"""Results of runs, in memory or in files: read, summarised, and what they spent together."""
