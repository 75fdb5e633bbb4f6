"""An analysis from a formula, a codebook and an ε: fit, read, contrast, predict, report."""
