"""Model files from elsewhere, of other formats or no model at all: refused in words, and nothing but data comes in."""

import json
import struct

import numpy as np
import pytest
import reference
from safetensors.numpy import load_file, save_file
from saved import X, Y
from saved import good as good
from stored import path as path

from labelsense import ModelFileError, WhitenedCompressor, load_model, model_file
from labelsense.model_file import read_header


def rewritten(path, change):
    """Write the file again with its tree and arrays changed."""
    header, arrays = read_header(path), load_file(path)
    change(header, arrays)
    save_file(arrays, path, metadata={"labelsense": json.dumps(header)})


def operator_parts(header):
    return header["model"]["learned"]["compressor_"]["learned"]["operator_"]["parts"]


CHANGES = {
    "rows beyond the matrix": lambda h, a: a["model.compressor_.operator_.rows"].__setitem__(0, 10**6),
    "order not a power of two": lambda h, a: operator_parts(h).update(order=63),
    "more labels than columns": lambda h, a: operator_parts(h).update(n_labels=10**9),
    "an unknown class": lambda h, a: h["model"].update({"is": "Popen"}),
    "a class that is not a model": lambda h, a: h.update(model=h["model"]["learned"]["learner_"]),
    "a missing array": lambda h, a: a.pop("model.compressor_.operator_.rows"),
    "an unknown setting": lambda h, a: h["model"]["settings"].update(shell="true"),
    "a method replaced": lambda h, a: h["model"]["learned"].update(predict_scores="x"),
    "weights of another size": lambda h, a: a.update({"model.learner_._solution.0": np.zeros((3, 3), np.float32)}),
    "weights of fewer features": lambda h, a: a.update(
        {"model.learner_._solution.0": a["model.learner_._solution.0"][:3].copy()}
    ),
    "no class": lambda h, a: h["model"].update({"is": None}),
    "no settings": lambda h, a: h["model"].pop("settings"),
    "no labels": lambda h, a: h["model"]["learned"].pop("vocabulary_"),
    "not fitted": lambda h, a: h["model"]["learned"]["learner_"].update(learned={}),
    "other labels": lambda h, a: h["model"]["learned"]["vocabulary_"]["parts"].update(n_labels=41),
    "labels twice": lambda h, a: h["model"]["learned"]["vocabulary_"]["parts"]["names"].__setitem__(0, "label 1"),
    "labels that are no data": lambda h, a: h["model"]["learned"]["vocabulary_"]["parts"]["names"].__setitem__(0, None),
    "a support that is too large": lambda h, a: h["model"]["learned"]["decoder_"]["settings"].update(n_nonzero=10**6),
    "a penalty that is a word": lambda h, a: h["model"]["learned"]["decoder_"]["settings"].update(penalty="much"),
    "features that are none": lambda h, a: h["model"]["learned"].update(features_=3),
    "a deep tree": lambda h, a: h.update(model=json.loads('{"is":"tuple","items":[' * 400 + "1" + "]}" * 400)),
}


def reads_files(header, arrays):
    steps = header["model"]["learned"]["features_"]["settings"]["steps"]
    steps[0]["items"][1]["settings"]["input"] = "filename"


def points_outside(header, arrays):
    steps = header["model"]["learned"]["features_"]["settings"]["steps"]
    steps[0]["items"][1]["learned"]["vocabulary_"]["values"][0] = 10**6


CHANGES["a vectoriser that reads files"] = reads_files
CHANGES["words with columns that are not there"] = points_outside


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_made_up_file_fails_with_a_message(change, good):
    rewritten(good, change)
    with pytest.raises(ModelFileError, match="tags.model is not a labelsense model"):
        load_model(good)


def test_sparse_rows_that_point_outside_are_refused(path):
    reference.paper(learner="kernel_ridge", random_state=0).fit(X, Y).save(path)
    rewritten(path, lambda header, arrays: arrays["model.learner_._design.X.indices"].__setitem__(0, 10**6))
    with pytest.raises(ModelFileError, match="is not a labelsense model that can be used"):
        load_model(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda matrix: matrix[:3],
        np.zeros_like,
        np.negative,
        lambda matrix: np.where(matrix == matrix.max(), np.nan, matrix),
        np.transpose,
    ],
    ids=["another size", "singular", "negative", "not a number", "not lower triangular"],
)
def test_a_whitening_that_cannot_be_is_refused(change, path):
    reference.paper(WhitenedCompressor(8, random_state=0)).fit(X, Y).save(path)
    name = "model.compressor_.operator_.whitening"
    rewritten(path, lambda header, arrays: arrays.update({name: np.ascontiguousarray(change(arrays[name]))}))
    with pytest.raises(ModelFileError, match="the whitening of A must"):
        load_model(path, mmap=True)


def test_training_rows_of_another_width_are_refused(path):
    reference.paper(learner="kernel_ridge", random_state=0).fit(X, Y).save(path)

    def narrow(header, arrays):
        header["model"]["learned"]["learner_"]["learned"]["_design"]["parts"]["X"]["parts"]["shape"]["items"][1] = 60
        header["model"]["learned"]["n_features_in_"] = 10**6
        header["model"]["learned"]["learner_"]["learned"]["n_features_in_"] = 10**6

    rewritten(path, narrow)
    with pytest.raises(ModelFileError, match="rows of 1000000 features cannot be compared with rows of 60"):
        load_model(path)


def test_a_file_of_a_newer_format_asks_for_an_update(good):
    rewritten(good, lambda header, arrays: header.update(format=99))
    with pytest.raises(ModelFileError, match="in format 99; this version reads formats up to 1. Update labelsense."):
        load_model(good)


@pytest.mark.parametrize("number", [0, -1, 1.5, "1", None, float("inf")])
def test_a_format_that_never_was_is_refused(number, good):
    rewritten(good, lambda header, arrays: header.update(format=number))
    with pytest.raises(ModelFileError, match="is not a labelsense model, or only part of one"):
        load_model(good)


def test_an_older_format_is_migrated(good, monkeypatch):
    monkeypatch.setattr(model_file, "FORMAT", 2)
    monkeypatch.setattr(model_file, "MIGRATIONS", {1: lambda tree: {**tree, "migrated": True}})
    assert read_header(good)["model"]["migrated"]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x80\x04pickle", struct.pack("<Q", 2**62)])
def test_other_files_are_refused(content, path):
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="tags.model is not a labelsense model, or only part of one"):
        load_model(path)


def test_a_missing_file_is_named(path):
    with pytest.raises(FileNotFoundError, match="There is no model file .*tags.model"):
        load_model(path)
