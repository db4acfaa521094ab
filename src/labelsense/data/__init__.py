"""Data to learn from."""

from labelsense.data.datasets import Dataset, load_debtags
from labelsense.data.image_folders import read_esp_folder, read_image_folder
from labelsense.data.images import SURFHistogramTransformer
from labelsense.data.synthetic import make_tagged_documents

__all__ = ["Dataset", "load_debtags", "make_tagged_documents"]
__all__ += ["SURFHistogramTransformer", "read_esp_folder", "read_image_folder"]
