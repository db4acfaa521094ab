"""
Larger than memory, and Dask
============================

The m regressions need sums over rows, and sums can be taken in pieces: over chunks of a file on one machine, or over
the workers of a cluster. The model is the same.
"""

# %%
# A file, and little memory
# -------------------------
# ``--memory`` says how much training may take. A file that needs more is trained on in chunks. This one is small, so
# that the page is quick: 500 MB are less than Python itself is said to need, so it goes the long way.

import json
import subprocess
import tempfile
from pathlib import Path

from labelsense.data import load_debtags

data = load_debtags()
folder = Path(tempfile.mkdtemp())
with open(folder / "docs.jsonl", "w") as file:
    for i in range(1500):
        text = " ".join(data.features[j] for j in data.X_train[[i]].indices)
        labels = [data.labels[j] for j in data.Y_train[[i]].indices]
        file.write(json.dumps({"text": text, "labels": labels}) + "\n")


def shell(command):
    done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True)
    print(f"$ {command}\n{done.stderr}{done.stdout}")


OPTIONS = (
    "--n-features 2000 -m 100 --compressor hadamard --learner ridge --alpha 1 --decoder omp --no-refine --no-hold-out"
)
shell(f"labelsense train docs.jsonl {OPTIONS} -o whole.model")
shell(f"labelsense train docs.jsonl {OPTIONS} -o chunks.model --memory 500M")

# %%
# The same labels
# ---------------

from labelsense import load_model

whole, chunks = load_model(folder / "whole.model"), load_model(folder / "chunks.model")
texts = [" ".join(data.features[j] for j in data.X_test[[i]].indices) for i in range(500)]
same = (whole.predict_topk(texts, 3).labels == chunks.predict_topk(texts, 3).labels).mean()
print(f"{100 * same:.1f} % of the first three labels of {len(texts)} texts are the same")

# %%
# After ``kill -9`` the same command goes on where it stopped, and the model has the same bytes. What is written where,
# and what it costs, is in :doc:`/scale`.
#
# Dask
# ----
# ``DaskCompressedLabelClassifier`` takes dask arrays, data frames, bags or files that the workers load. Rows stay with
# the workers; ``to_local()`` is the ordinary classifier. A cluster of threads in this process stands in for yours
# here.

import dask.array as da
from distributed import Client

from labelsense import HadamardCompressor, LogTfidfTransformer, OMPDecoder, RidgeLearner
from labelsense.dask import DaskCompressedLabelClassifier

X = LogTfidfTransformer().fit_transform(data.X_train[:2000])[:, :300].toarray()
Y = data.Y_train[:2000].toarray().astype("int8")
with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None) as client:
    blocks = da.from_array(X, chunks=(500, 300)), da.from_array(Y, chunks=(500, Y.shape[1]))
    clf = DaskCompressedLabelClassifier(
        HadamardCompressor(100), RidgeLearner(alpha=1.0), OMPDecoder(10), refiner=None, random_state=0, client=client
    ).fit(*blocks)
    top = clf.predict_topk(blocks[0], k=3)
    print(top.labels)  # nothing is computed yet
    labels = top.labels.compute()
local = clf.to_local()
print(type(local).__name__, (local.predict_topk(X, k=3).labels == labels).all())

# %%
# From the shell: ``labelsense train "docs/part-*.jsonl.gz" -o tags.model --scheduler tcp://host:8786``, or ``--workers
# 4`` for processes on this machine.
