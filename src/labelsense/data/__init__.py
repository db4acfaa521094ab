"""Data to learn from."""

from labelsense.data.synthetic import make_tagged_documents

__all__ = ["make_tagged_documents"]
