"""The version of the library: the only place that has it."""

__version__ = "0.2.0"
