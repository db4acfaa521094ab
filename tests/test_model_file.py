"""Model files: what goes in comes out, also of files that 0.1 wrote, and only data goes in."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import reference
import scipy.sparse as sp
from conftest import COMPRESSORS, LEARNERS
from hypothesis import given
from hypothesis import strategies as st
from saved import LISTS, TEXTS, X, Y, same
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import SVR
from stored import FORMAT1, STORED
from stored import path as path

from labelsense import (
    CosineKernel,
    ECOCClassifier,
    GaussianCompressor,
    HadamardCompressor,
    KernelRidgeLearner,
    OMPDecoder,
    OneVsAllClassifier,
    PolynomialKernel,
    RBFKernel,
    RidgeLearner,
    SECOCClassifier,
    load_model,
    model_file,
)
from labelsense.features import text_hashing
from labelsense.model_file import array_sizes, read_header
from labelsense.reconstruct import DECODERS


def compressor_for(compressor):
    return compressor(n_measurements=25, random_state=1)


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
