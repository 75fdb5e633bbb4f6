"""Figures, one a file; loaded only when drawn."""

FIGURES = {"mmd-easy": "dpmc.figures.mmd_easy", "clipping-easy": "dpmc.figures.clipping_easy", "circle": "dpmc.figures.circle"}
