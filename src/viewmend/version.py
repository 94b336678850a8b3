"""The version of the package, where nothing else has to be imported to know it."""

__all__ = ["__version__"]

__version__ = "0.2.0"
