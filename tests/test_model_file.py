"""Model files: what goes in comes out, whole or not at all, and nothing but data comes in."""

import contextlib
import json
import os
import signal
import struct
import subprocess
import sys
import textwrap

import numpy as np
import pytest
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
    CompressedLabelClassifier,
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
    model = CompressedLabelClassifier(compressor_for(compressor), decoder=clone(decoder).set_params(n_nonzero=4))
    model.fit(X, Y)
    again = saved_and_loaded(model, path)
    assert same(model, again, X)
    assert again.get_params()["decoder__n_nonzero"] == 4


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_learners_round_trip(learner, path):
    model = CompressedLabelClassifier(HadamardCompressor(8, random_state=0), learner).fit(X, Y)
    assert same(model, saved_and_loaded(model, path), X)


@pytest.mark.parametrize(
    "kernel", [RBFKernel(0.5), PolynomialKernel(3, 0.5), CosineKernel(), RBFKernel(2.0) + CosineKernel()], ids=str
)
@pytest.mark.parametrize("rows", [X, X.toarray()], ids=["sparse", "dense"])
def test_kernels_round_trip(kernel, rows, path):
    model = CompressedLabelClassifier(HadamardCompressor(8, random_state=0), KernelRidgeLearner(kernel)).fit(rows, Y)
    assert same(model, saved_and_loaded(model, path), rows)


@pytest.mark.parametrize(
    "features",
    ["words", "hashing", TfidfVectorizer(ngram_range=(1, 2), stop_words=["word1"]), make_pipeline(TfidfVectorizer())],
    ids=["words", "hashing", "tfidf", "pipeline"],
)
def test_vectorisers_round_trip_and_take_text(features, path):
    model = CompressedLabelClassifier(features=features, random_state=0).fit(TEXTS, LISTS)
    again = saved_and_loaded(model, path)
    assert same(model, again, TEXTS)
    assert again.predict_topk(TEXTS[:1]).labels[0, 0].startswith("label ")


def test_other_scikit_learn_estimators_are_stored_by_skops(path):
    model = CompressedLabelClassifier(learner=Ridge(), features=MaxAbsScaler(), random_state=0).fit(X, Y)
    assert same(model, saved_and_loaded(model, path), X)
    model = CompressedLabelClassifier(HadamardCompressor(4), SVR(), random_state=0).fit(X, Y)
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
    model = CompressedLabelClassifier(random_state=0).fit(rows, names)
    again = saved_and_loaded(model, path)
    assert again.labels_ == model.labels_
    assert same(model, again, rows)


def test_a_loaded_model_goes_on_learning_exactly(path):
    learner = RidgeLearner(alpha=0.5, updatable=True)
    model = CompressedLabelClassifier(HadamardCompressor(20, random_state=0), learner, features=text_hashing(64))
    first, rest = [labels or ["label 0"] for labels in LISTS[:150]], LISTS[150:]
    model.fit(TEXTS[:150], first)
    again = saved_and_loaded(model, path).partial_fit(TEXTS[150:], rest)
    again = saved_and_loaded(again, path)
    model.partial_fit(TEXTS[150:], rest)
    np.testing.assert_allclose(again.measure(TEXTS), model.measure(TEXTS), atol=1e-6)


def test_weights_are_mapped_not_read(path):
    model = CompressedLabelClassifier(random_state=0).fit(X, Y)
    weights = saved_and_loaded(model, path).learner_.coef_
    while isinstance(weights, np.ndarray) and not isinstance(weights, np.memmap):
        weights = weights.base
    assert isinstance(weights, np.memmap)


def test_the_header_tells_what_is_inside(path):
    CompressedLabelClassifier(GaussianCompressor(25, random_state=0)).fit(X, LISTS).save(path)
    header = read_header(path)
    assert header["format"] == model_file.FORMAT
    assert header["model"]["settings"]["compressor"]["is"] == "GaussianCompressor"
    assert ("F32", (40, 25), 4000) in array_sizes(path).values()


def test_a_function_cannot_be_saved(path):
    model = CompressedLabelClassifier(features=TfidfVectorizer(tokenizer=str.split, token_pattern=None), random_state=0)
    model.fit(TEXTS, LISTS)
    with pytest.raises(TypeError, match="model.features.tokenizer is .* model files hold data, not code"):
        model.save(path)
    assert not list(path.parent.iterdir())


def test_an_unfitted_model_cannot_be_saved(path):
    with pytest.raises(ValueError, match="is not fitted yet"):
        CompressedLabelClassifier().save(path)


def test_texts_without_features_are_refused():
    with pytest.raises(TypeError, match="X holds texts where .*features='words'"):
        CompressedLabelClassifier().fit(TEXTS, LISTS)


# --- files from elsewhere ------------------------------------------------------------------------------------------


@pytest.fixture
def good(path):
    CompressedLabelClassifier(features="words", random_state=0).fit(TEXTS, LISTS).save(path)
    return path


@given(data=st.data())
def test_a_file_cut_off_or_changed_anywhere_loads_or_fails_with_a_message(data, tmp_path_factory, good_bytes):
    content = bytearray(good_bytes)
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    else:
        for _ in range(data.draw(st.integers(1, 5))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("broken") / "tags.model"
    path.write_bytes(content)
    with contextlib.suppress(ModelFileError), np.errstate(all="ignore"):
        load_model(path).predict_scores(TEXTS[:5])


@pytest.fixture(scope="module")
def good_bytes(tmp_path_factory):
    path = tmp_path_factory.mktemp("good") / "tags.model"
    CompressedLabelClassifier(features="words", random_state=0).fit(TEXTS, LISTS).save(path)
    return path.read_bytes()


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
    CompressedLabelClassifier(learner="kernel_ridge", random_state=0).fit(X, Y).save(path)
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
    CompressedLabelClassifier(WhitenedCompressor(8, random_state=0)).fit(X, Y).save(path)
    name = "model.compressor_.operator_.whitening"
    rewritten(path, lambda header, arrays: arrays.update({name: np.ascontiguousarray(change(arrays[name]))}))
    with pytest.raises(ModelFileError, match="the whitening of A make no sense"):
        load_model(path)


def test_training_rows_of_another_width_are_refused(path):
    CompressedLabelClassifier(learner="kernel_ridge", random_state=0).fit(X, Y).save(path)

    def narrow(header, arrays):
        header["model"]["learned"]["learner_"]["learned"]["_design"]["parts"]["X"]["parts"]["shape"]["items"][1] = 60
        header["model"]["learned"]["n_features_in_"] = 10**6
        header["model"]["learned"]["learner_"]["learned"]["n_features_in_"] = 10**6

    rewritten(path, narrow)
    with pytest.raises(ModelFileError, match="Rows of 1000000 features cannot be compared with rows of 60"):
        load_model(path)


def test_a_file_of_a_newer_format_asks_for_an_update(good):
    rewritten(good, lambda header, arrays: header.update(format=99))
    with pytest.raises(ModelFileError, match="in format 99; this version reads formats up to 1. Update labelsense."):
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

    def fail(arrays, temporary, metadata):
        temporary.write_bytes(b"half a mod")
        raise OSError("disk full")

    monkeypatch.setattr(model_file, "save_file", fail)
    with pytest.raises(OSError, match="disk full"):
        load_model(good).save(good)
    assert good.read_bytes() == before
    assert [file.name for file in good.parent.iterdir()] == ["tags.model"]


def test_a_process_killed_in_the_middle_of_a_save_leaves_the_old_file(good):
    before = good.read_bytes()
    program = """
        import signal, sys
        from labelsense import load_model, model_file
        real = model_file.save_file
        def slowly(arrays, temporary, metadata):
            real(arrays, temporary, metadata)
            with open(temporary, "r+b") as file:
                file.truncate(1000)
            print("in the middle", flush=True)
            signal.pause()
        model_file.save_file = slowly
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


def test_a_saved_file_can_be_replaced_while_a_loaded_model_uses_it(good):
    model = load_model(good)
    scores = model.predict_scores(TEXTS)
    CompressedLabelClassifier(random_state=1).fit(X, Y).save(good)
    assert same(model, model, TEXTS)
    assert model.predict_scores(TEXTS).data.tobytes() == scores.data.tobytes()
