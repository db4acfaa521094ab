"""Data to learn from."""

from labelsense.data.datasets import Dataset, load_dataset, load_debtags
from labelsense.data.formats import (
    FORMATS,
    Examples,
    FormatError,
    detect_format,
    read_examples,
    stream_examples,
    write_examples,
)
from labelsense.data.image_folders import read_esp_folder, read_image_folder
from labelsense.data.synthetic import make_tagged_documents

__all__ = [
    "FORMATS",
    "Dataset",
    "Examples",
    "FormatError",
    "detect_format",
    "load_dataset",
    "load_debtags",
    "make_tagged_documents",
    "read_esp_folder",
    "read_examples",
    "read_image_folder",
    "stream_examples",
    "write_examples",
]
