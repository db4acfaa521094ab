"""Data to learn from."""

from labelsense.data.datasets import Dataset, load_debtags
from labelsense.data.synthetic import make_tagged_documents

__all__ = ["Dataset", "load_debtags", "make_tagged_documents"]
