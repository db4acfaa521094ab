"""
Serve a model
=============

``labelsense serve`` puts models on the network: a page to try them on, and the REST interface of Annif. Needs the
extra ``serve``.
"""

# %%
# A model, and a server
# ---------------------

import json
import subprocess
import tempfile
import urllib.parse
import urllib.request
from pathlib import Path

import numpy as np

from labelsense import CompressedLabelClassifier, HadamardCompressor, RidgeLearner
from labelsense.data import load_debtags

data = load_debtags()
rows = np.random.default_rng(0).permutation(data.X_train.shape[0])[:2000]
texts = [" ".join(data.features[j] for j in data.X_train[[i]].indices) for i in rows]
tags = [[data.labels[j] for j in data.Y_train[[i]].indices] for i in rows]
clf = CompressedLabelClassifier(
    HadamardCompressor(150), RidgeLearner(alpha=1.0), "omp", features="words", refiner=None, random_state=0
).fit(texts, tags)

folder = Path(tempfile.mkdtemp())
clf.save(folder / "tags.model")

server = subprocess.Popen(
    ["labelsense", "serve", "--port", "0", str(folder / "tags.model")],
    stderr=subprocess.PIPE,
    text=True,
)
address = server.stderr.readline().split(" at ")[1].strip()

# %%
# In a shell that is ``labelsense serve tags.model``, and the address ``http://127.0.0.1:8000/``. Open it in a browser,
# and there is a page: labels while you type, why each was suggested, and how the decoder found it.
#
# .. image:: /_static/screenshot.png
#    :alt: The page of the service
#    :width: 100%
#
# Ask it
# ------
# With any HTTP client. The routes under ``/v1`` are those of Annif, so annif-client and Annif's own ``http`` backend
# work unchanged.


def ask(path, **fields):
    body = urllib.parse.urlencode(fields).encode() if fields else None
    with urllib.request.urlopen(address + path, body) as answer:
        return json.load(answer)


print(json.dumps(ask("v1/projects")["projects"][0], indent=1))

# %%
suggestions = ask("v1/projects/tags/suggest", text="A console program to play chess against the computer", limit=3)
print(json.dumps(suggestions, indent=1))

# %%
# Beyond Annif's interface: labels to choose from or to leave out, with each request, and why a label was suggested.

best = suggestions["results"][0]["uri"]
why = ask("v1/projects/tags/explain", text="A console program to play chess", uri=best, limit=4)
print(best, [(part["feature"], round(part["value"], 3)) for part in why["parts"]], "sum", round(why["score"], 3))

# %%
# For operations
# --------------
# Health, metrics for Prometheus, a description as OpenAPI. Requests that come together are predicted together; a full
# queue answers 503 with ``Retry-After``. SIGHUP loads the model files again, SIGTERM stops when all is answered.

with urllib.request.urlopen(address + "metrics") as answer:
    print(*(line for line in answer.read().decode().splitlines() if "requests_total{" in line), sep="\n")

server.terminate()
server.stderr.close()
print("ended with", server.wait())

# %%
# Learning from corrections (``--allow-learning``), keys, limits and vocabularies: :doc:`/service`.
