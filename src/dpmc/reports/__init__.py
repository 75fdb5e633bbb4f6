"""What a study shows: figures, tables and verdicts on claims."""
