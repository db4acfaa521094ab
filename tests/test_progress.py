"""What long work says."""

import logging
import subprocess
import sys

import reference

from labelsense import KernelRidgeLearner, RidgeLearner
from labelsense import _progress as progress
from labelsense.data import make_tagged_documents


def test_silent_unless_asked(caplog):
    X, Y = make_tagged_documents(200, 100, 50, random_state=0)
    with caplog.at_level(logging.INFO, "labelsense"):
        reference.paper(random_state=0).fit(X, Y).predict_topk(X)
        assert not caplog.records
        reference.paper(random_state=0, verbose=1).fit(X, Y).predict_topk(X)
    text = caplog.text
    assert "compressed 50 labels to 50 measurements" in text
    assert "ridge: 200 rows, 100 features, 50 targets by " in text
    assert "learned 50 regressions on 200 rows" in text


def test_long_steps_report_how_far_they_are(caplog, monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 0)
    X, Y = make_tagged_documents(200, 100, 50, random_state=0)
    with caplog.at_level(logging.INFO, "labelsense"):
        for learner in (RidgeLearner(verbose=1), RidgeLearner(solver="cg", verbose=1), KernelRidgeLearner(verbose=1)):
            learner.fit(X, Y)
        KernelRidgeLearner(max_memory=0, verbose=1).fit(X, Y)
    for step in (
        "Cholesky factor: 0 %",
        "conjugate gradients",
        "kernel matrix: 0 %",
        "product with the",
    ):
        assert step in caplog.text


def test_verbose_shows_something_where_logging_is_not_set_up():
    script = (
        "from labelsense import *; from labelsense.data import make_tagged_documents as m;"
        "CompressedLabelClassifier(verbose=1).fit(*m(100, 50, 20, random_state=0))"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stderr
    assert "labelsense: compressed 20 labels" in shown
