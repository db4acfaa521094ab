"""Model files: what goes in comes out, whole or not at all, and nothing but data comes in."""

import json
import os
import resource
import signal
import struct
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import reference
import scipy.sparse as sp
from conftest import COMPRESSORS, LEARNERS
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import SVR

from labelsense import (
    CosineKernel,
    ECOCClassifier,
    GaussianCompressor,
    HadamardCompressor,
    KernelRidgeLearner,
    ModelFileError,
    OMPDecoder,
    OneVsAllClassifier,
    PolynomialKernel,
    RBFKernel,
    RidgeLearner,
    SECOCClassifier,
    WhitenedCompressor,
    load_model,
    model_file,
)
from labelsense.data import make_tagged_documents
from labelsense.features import text_hashing
from labelsense.model_file import array_sizes, read_header
from labelsense.reconstruct import DECODERS

X, Y = make_tagged_documents(200, 60, n_labels=40, random_state=0)
TEXTS = [" ".join(f"word{j}" for j in X.indices[a:b]) for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)]
LISTS = [[f"label {j}" for j in Y.indices[a:b]] for a, b in zip(Y.indptr[:-1], Y.indptr[1:], strict=True)]


def compressor_for(compressor):
    return compressor(n_measurements=25, random_state=1)


def same(model, again, rows):
    old, new = model.predict_scores(rows), again.predict_scores(rows)
    return (
        old.shape == new.shape and old.data.tobytes() == new.data.tobytes() and np.array_equal(old.indices, new.indices)
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tags.model"


def saved_and_loaded(model, path):
    model.save(path)
    return load_model(path)


@pytest.mark.parametrize("compressor", COMPRESSORS)
@pytest.mark.parametrize("decoder", [*(cls() for cls in DECODERS.values()), OMPDecoder(nonnegative=True)], ids=str)
def test_compressors_and_decoders_round_trip(compressor, decoder, path):
    model = reference.paper(compressor_for(compressor), decoder=clone(decoder).set_params(n_nonzero=4))
    model.fit(X, Y)
    again = saved_and_loaded(model, path)
    assert same(model, again, X)
    assert again.get_params()["decoder__n_nonzero"] == 4


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_learners_round_trip(learner, path):
    model = reference.paper(HadamardCompressor(8, random_state=0), learner).fit(X, Y)
    assert same(model, saved_and_loaded(model, path), X)


@pytest.mark.parametrize(
    "kernel", [RBFKernel(0.5), PolynomialKernel(3, 0.5), CosineKernel(), RBFKernel(2.0) + CosineKernel()], ids=str
)
@pytest.mark.parametrize("rows", [X, X.toarray()], ids=["sparse", "dense"])
def test_kernels_round_trip(kernel, rows, path):
    model = reference.paper(HadamardCompressor(8, random_state=0), KernelRidgeLearner(kernel)).fit(rows, Y)
    assert same(model, saved_and_loaded(model, path), rows)


@pytest.mark.parametrize(
    "features",
    ["words", "hashing", TfidfVectorizer(ngram_range=(1, 2), stop_words=["word1"]), make_pipeline(TfidfVectorizer())],
    ids=["words", "hashing", "tfidf", "pipeline"],
)
def test_vectorisers_round_trip_and_take_text(features, path):
    model = reference.paper(features=features, random_state=0).fit(TEXTS, LISTS)
    again = saved_and_loaded(model, path)
    assert same(model, again, TEXTS)
    assert again.predict_topk(TEXTS[:1]).labels[0, 0].startswith("label ")


def test_other_scikit_learn_estimators_are_stored_by_skops(path):
    model = reference.paper(learner=Ridge(), features=MaxAbsScaler(), random_state=0).fit(X, Y)
    assert same(model, saved_and_loaded(model, path), X)
    model = reference.paper(HadamardCompressor(4), SVR(), random_state=0).fit(X, Y)
    assert same(model, saved_and_loaded(model, path), X)


@pytest.mark.parametrize("baseline", [OneVsAllClassifier(), ECOCClassifier(random_state=0), SECOCClassifier()], ids=str)
def test_baselines_round_trip(baseline, path):
    model = baseline.fit(X, LISTS)
    assert same(model, saved_and_loaded(model, path), X)


@given(st.lists(st.one_of(st.text(), st.integers(-(10**9), 10**9), st.tuples(st.text(), st.integers())), min_size=1))
def test_labels_of_any_plain_kind_round_trip(tmp_path_factory, labels):
    path = tmp_path_factory.mktemp("labels") / "tags.model"
    names = [[label] for label in labels] + [["a", "b"]]
    rows = np.eye(len(names), dtype=np.float32)
    model = reference.paper(random_state=0).fit(rows, names)
    again = saved_and_loaded(model, path)
    assert again.labels_ == model.labels_
    assert same(model, again, rows)


def test_a_loaded_model_goes_on_learning_exactly(path):
    learner = RidgeLearner(alpha=0.5, updatable=True)
    model = reference.paper(HadamardCompressor(20, random_state=0), learner, features=text_hashing(64))
    first, rest = [labels or ["label 0"] for labels in LISTS[:150]], LISTS[150:]
    model.fit(TEXTS[:150], first)
    again = saved_and_loaded(model, path).partial_fit(TEXTS[150:], rest)
    again = saved_and_loaded(again, path)
    model.partial_fit(TEXTS[150:], rest)
    np.testing.assert_allclose(again.measure(TEXTS), model.measure(TEXTS), atol=1e-6)


@pytest.mark.parametrize("mmap", [False, True])
def test_weights_are_mapped_where_that_is_asked_for(mmap, path):
    model = reference.paper(random_state=0).fit(X, Y)
    model.save(path)
    again = load_model(path, mmap=mmap)
    assert same(model, again, X)
    weights = again.learner_.coef_
    while isinstance(weights, np.ndarray) and not isinstance(weights, np.memmap):
        weights = weights.base
    assert isinstance(weights, np.memmap) == mmap


def test_a_loaded_model_survives_that_its_file_is_written_over(path):
    model = reference.paper(random_state=0).fit(X, Y)
    again = saved_and_loaded(model, path)
    path.write_bytes(b"")  # in place: a mapped page would be gone, and the process with it
    assert same(model, again, X)


@pytest.mark.parametrize("table", [pd.DataFrame, pa.table], ids=["pandas", "pyarrow"])
@pytest.mark.parametrize("width", [5, 100])
def test_names_of_columns_are_kept(table, width, path):
    rows = table({f"column {j}": np.random.default_rng(j).random(200) for j in range(width)})
    model = reference.paper(random_state=0).fit(rows, LISTS)
    again = saved_and_loaded(model, path)
    assert again.feature_names_in_.tolist() == [f"column {j}" for j in range(width)]
    assert again.feature_names_in_.dtype == object
    assert same(model, again, rows)


FORMAT1 = Path(__file__).parent / "data" / "format1"
STORED = json.loads((FORMAT1 / "predictions.json").read_text())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.InconsistentVersionWarning")  # one has a LinearRegression
@pytest.mark.parametrize("name", STORED["models"])
def test_files_of_format_1_predict_what_they_did(name):
    """The files were written by labelsense 0.1.0, and the predictions by the models before they were saved."""
    expected = STORED["models"][name]
    rows = STORED["rows"]["dense" if expected["rows"] == "sparse" else expected["rows"]]
    if expected["rows"] != "texts":
        rows = np.array(rows, np.uint8 if expected["rows"] == "images" else np.float64)
    model = load_model(FORMAT1 / f"{name}.model")
    top = model.predict_topk(sp.csr_array(rows) if expected["rows"] == "sparse" else rows, 3)
    sure = np.array(expected["scores"]) > 0
    np.testing.assert_allclose(top.scores[sure], np.array(expected["scores"])[sure], atol=2e-4)
    found = [[list(label) if isinstance(label, tuple) else label for label in row] for row in top.labels.tolist()]
    for labels, wanted, keep in zip(found, expected["labels"], sure, strict=True):
        assert np.array(labels, object)[keep].tolist() == np.array(wanted, object)[keep].tolist()


def test_a_file_of_format_1_goes_on_learning():
    model = load_model(FORMAT1 / "updatable.model")
    before = model.measure(STORED["rows"]["texts"])
    model.partial_fit(["a zebra"], [["stripes"]]).forget(["a zebra"], [["stripes"]])
    np.testing.assert_allclose(model.measure(STORED["rows"]["texts"]), before, atol=1e-5)
    assert model.labels_[-1] == "stripes"


def test_the_header_tells_what_is_inside(path):
    reference.paper(GaussianCompressor(25, random_state=0)).fit(X, LISTS).save(path)
    header = read_header(path)
    assert header["format"] == model_file.FORMAT
    assert header["model"]["settings"]["compressor"]["is"] == "GaussianCompressor"
    assert ("F32", (40, 25), 4000) in array_sizes(path).values()


def test_a_function_cannot_be_saved(path):
    model = reference.paper(features=TfidfVectorizer(tokenizer=str.split, token_pattern=None), random_state=0)
    model.fit(TEXTS, LISTS)
    with pytest.raises(TypeError, match="model.features.tokenizer is .* model files hold data, not code"):
        model.save(path)
    assert not list(path.parent.iterdir())


def test_an_unfitted_model_cannot_be_saved(path):
    with pytest.raises(ValueError, match="is not fitted yet"):
        reference.paper().save(path)


def test_texts_without_features_are_refused():
    with pytest.raises(TypeError, match="X holds texts where .*features='words'"):
        reference.paper().fit(TEXTS, LISTS)


# --- files from elsewhere ------------------------------------------------------------------------------------------


@pytest.fixture
def good(path):
    reference.paper(features="words", random_state=0).fit(TEXTS, LISTS).save(path)
    return path


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


# --- whole or not at all -------------------------------------------------------------------------------------------


def test_a_save_that_fails_leaves_the_old_file(good, monkeypatch):
    before = good.read_bytes()

    def fail(temporary, arrays, about):
        temporary.write_bytes(b"half a mod")
        raise OSError("disk full")

    monkeypatch.setattr(model_file, "write_tensors", fail)
    with pytest.raises(OSError, match="disk full"):
        load_model(good).save(good)
    assert good.read_bytes() == before
    assert [file.name for file in good.parent.iterdir()] == ["tags.model"]


def test_a_full_disk_is_an_os_error_that_names_the_file(good):
    before = good.read_bytes()
    model = load_model(good)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limit[1]))  # stands for the disk
    try:
        with pytest.raises(OSError, match=r"\[Errno 27\] File too large: '.*/tags.model'"):
            model.save(good)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, handler)
    assert good.read_bytes() == before
    assert [file.name for file in good.parent.iterdir()] == ["tags.model"]


@pytest.mark.parametrize("place", ["", "missing/tags.model"])
def test_places_where_no_model_can_be_are_named(place, tmp_path):
    model = reference.paper(random_state=0).fit(X, Y)
    with pytest.raises(OSError, match=os.fspath(tmp_path / place)):
        model.save(tmp_path / place)


def test_two_that_save_at_the_same_time_leave_one_of_the_two(path):
    models = [reference.paper(random_state=seed).fit(X, Y) for seed in (0, 1)]
    threads = [threading.Thread(target=model.save, args=(path,)) for model in models * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    again = load_model(path)
    assert any(same(model, again, X) for model in models)
    assert [file.name for file in path.parent.iterdir()] == ["tags.model"]


def test_a_process_killed_in_the_middle_of_a_save_leaves_the_old_file(good):
    before = good.read_bytes()
    program = """
        import signal, sys
        from labelsense import load_model, model_file
        real = model_file.write_tensors
        def slowly(temporary, arrays, about):
            real(temporary, arrays, about)
            with open(temporary, "r+b") as file:
                file.truncate(1000)
            print("in the middle", flush=True)
            signal.pause()
        model_file.write_tensors = slowly
        load_model(sys.argv[1]).save(sys.argv[1])
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), os.fspath(good)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "in the middle\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert good.read_bytes() == before
    assert load_model(good).predict_topk(TEXTS[:1]).labels.shape == (1, 5)


def test_a_saved_file_can_be_replaced_while_a_mapped_model_uses_it(good):
    model = load_model(good, mmap=True)
    scores = model.predict_scores(TEXTS)
    reference.paper(random_state=1).fit(X, Y).save(good)
    assert same(model, model, TEXTS)
    assert model.predict_scores(TEXTS).data.tobytes() == scores.data.tobytes()
