"""Figures that are not declared by kind yet; `config/figures` names their functions."""
