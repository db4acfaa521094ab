"""Data to learn from."""

from labelsense.data.dataset import Dataset
from labelsense.data.datasets import load_dataset, load_debtags
from labelsense.data.formats import (
    FORMATS,
    Examples,
    detect_format,
    read_examples,
    stream_examples,
    write_examples,
)
from labelsense.data.image_folders import read_esp_folder, read_image_folder
from labelsense.data.synthetic import make_tagged_documents
from labelsense.errors import FormatError

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
