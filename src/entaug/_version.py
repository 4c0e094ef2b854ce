"""The version, apart from the package so that any module may import it."""

__version__ = "0.2.0"
