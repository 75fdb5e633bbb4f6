"""The version of dpmc."""

__version__ = "0.1.0"
