"""Models, one per file, and the catalogue of the models of the published experiments.

A model is an object with the methods of `dpmc.base.Model`. Studies name it by its id in the catalogue. A
user's model, named as `module:Class`, needs only `dimension` and `log_likelihood(theta, rows) -> (n,)`
(`dpmc.models.own`, docs/how-to/own-model.md).
"""

from dpmc.models.catalogue import MODELS, definition
from dpmc.models.definition import Definition

__all__ = ["MODELS", "Definition", "definition"]
