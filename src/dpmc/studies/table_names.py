"""The names of the tables: what a study's keys need of them, without the modules that make them."""

NAMES = ("models", "hyperparameters", "iterations", "run-times", "claims")
