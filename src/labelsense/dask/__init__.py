"""Training and prediction on many machines, by Dask. The only package that imports it.

The rows stay with the workers. What is computed of them is sent to the client as sums over trees of a fixed shape, so
that a model has the same bytes for any number of workers, and after a worker was lost. Data are loaded by tasks: what a
worker held that is gone is loaded and computed again.
"""

try:
    import dask  # noqa: F401
    import distributed  # noqa: F401
except ImportError:
    raise ImportError('labelsense.dask needs dask and distributed: pip install "labelsense[dask]".') from None

from labelsense.dask.chunks import DaskChunks
from labelsense.dask.classifier import DaskCompressedLabelClassifier
from labelsense.dask.files import connect, train_files
from labelsense.dask.pieces import Rows, read

__all__ = ["DaskChunks", "DaskCompressedLabelClassifier", "Rows", "connect", "read", "train_files"]
