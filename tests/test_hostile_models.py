"""Model files that somebody made up: sizes, names and settings that no model has are refused."""

import os

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline
from stored import FORMAT1, LISTS, TEXTS, build, changed, parse
from stored import path as path
from stored import ridge as ridge
from stored import words as words

from labelsense import (
    CompressedLabelClassifier,
    HadamardCompressor,
    KernelRidgeLearner,
    LogTfidfTransformer,
    ModelFileError,
    RBFKernel,
    load_model,
)
from labelsense.regress import kernel_ridge

# --- made-up sizes ------------------------------------------------------------------------------------------------


def test_a_large_whitened_matrix_is_not_made_before_it_is_used(path):
    def enlarge(model):
        learned = model["learned"]
        parts = learned["compressor_"]["learned"]["operator_"]["parts"]["hadamard"]["parts"]
        parts["order"] = parts["n_labels"] = 2**22
        learned["vocabulary_"]["parts"] = {"names": None, "n_labels": 2**22}

    path.write_bytes((FORMAT1 / "whitened.model").read_bytes())
    model = load_model(changed(path, enlarge))
    assert "_kernel" not in vars(model.compressor_.operator_)
    assert model.compressor_.operator_.n_labels == 2**22


def test_rows_of_a_kernel_have_no_more_columns_than_makes_sense(path):
    def widen(model):
        learner = model["learned"]["learner_"]["learned"]
        learner["_design"]["parts"]["X"]["parts"]["shape"]["items"][1] = 2**28
        model["learned"]["n_features_in_"] = learner["n_features_in_"] = 2**28

    path.write_bytes((FORMAT1 / "kernel_ridge.model").read_bytes())
    with pytest.raises(ModelFileError, match="rows of 268435456 features that hold .* cannot be stored"):
        load_model(changed(path, widen))


def test_what_could_not_be_loaded_is_not_saved(path, monkeypatch):
    monkeypatch.setattr(kernel_ridge, "EMPTY_COLUMNS", 100)
    learner = KernelRidgeLearner(RBFKernel(1.0))
    model = reference.paper(HadamardCompressor(2), learner, random_state=0)
    model.fit(sp.eye_array(20, 500, format="csr"), LISTS)
    with pytest.raises(ValueError, match="cannot be saved: model.learner_ is a KernelRidgeLearner, and rows of 500"):
        model.save(path)
    assert not path.exists()


def test_an_array_is_used_once(ridge):
    def use_twice(model):
        model["settings"]["random_state"] = model["learned"]["learner_"]["learned"]["_solution"]["items"][0]

    with pytest.raises(ModelFileError, match="'model.learner_._solution.0', or it is used twice"):
        load_model(changed(ridge, use_twice))


@pytest.mark.parametrize("number", [0, -1, 2.5, True])
def test_features_and_labels_are_counted_in_whole_numbers(number, ridge):
    def count_features(model):
        model["learned"]["n_features_in_"] = number

    def count_labels(model):
        model["learned"]["vocabulary_"]["parts"] = {"names": None, "n_labels": number}

    content = ridge.read_bytes()
    for change, message in (
        (count_features, "n_features_in_ must be a whole"),
        (count_labels, "of labels must be a whole"),
    ):
        ridge.write_bytes(content)
        with pytest.raises(ModelFileError, match=message):
            load_model(changed(ridge, change))


def test_threads_are_few(ridge):
    with pytest.raises(ModelFileError, match="n_jobs must be at most 1024"):
        load_model(changed(ridge, lambda model: model["settings"].update(n_jobs=10**6)))
    model = reference.paper(n_jobs=np.int64(10**6)).fit(np.eye(20), LISTS)
    with pytest.raises(ValueError, match="cannot be saved: model is a .*, and n_jobs must be at most 1024"):
        model.save(ridge)


def test_weights_of_another_kind_are_refused(ridge):
    entries, top, data = parse(ridge.read_bytes())
    entries["model.learner_._solution.0"]["dtype"] = "I32"
    ridge.write_bytes(build(entries, top, data))
    with pytest.raises(ModelFileError, match="the weights must be an array of float32"):
        load_model(ridge)


@pytest.mark.parametrize(
    ("scaling", "message"),
    [
        ([], "scaling_ must be a transformer"),
        ({"is": "UnitRows", "settings": {}, "learned": {"n_features_in_": 10**6}}, "scaling_ must be of its features"),
    ],
)
def test_a_scaling_that_is_none_is_refused(scaling, message, ridge):
    changed(ridge, lambda model: model["learned"].update(scaling_=scaling))
    with pytest.raises(ModelFileError, match=message):
        load_model(ridge)


# --- made-up names ------------------------------------------------------------------------------------------------


def vectoriser_of(model):
    return model["learned"]["features_"]["settings"]["steps"][0]["items"][1]


def learned_input(model):
    del vectoriser_of(model)["settings"]["input"]
    vectoriser_of(model)["learned"]["input"] = "filename"


def nested(change):
    """Put the vectoriser into a second pipeline."""

    def nest(model):
        change(model)
        settings = model["learned"]["features_"]["settings"]
        inner = {"is": "Pipeline", "settings": {"steps": [settings["steps"][0]]}, "learned": {}}
        settings["steps"][0] = {"is": "tuple", "items": ["p", inner]}

    return nest


def set_input(model):
    vectoriser_of(model)["settings"]["input"] = "filename"


def unfitted_input(model):
    model["settings"]["features"] = {"is": "CountVectorizer", "settings": {"input": "file"}, "learned": {}}


@pytest.mark.parametrize(
    "change",
    [learned_input, nested(learned_input), set_input, nested(set_input), unfitted_input],
    ids=["learned", "learned, nested", "set", "set, nested", "not fitted"],
)
def test_a_model_that_reads_files_is_refused(change, words):
    with pytest.raises(ModelFileError, match="reads files|cannot have learned 'input'"):
        load_model(changed(words, change))


@pytest.mark.parametrize(
    "name", ["input", "_state", "predict_topk", "labels_", "__class__", "_check_complete", "analyzer"]
)
def test_only_what_fitting_sets_can_have_been_learned(name, words):
    def learn(model):
        model["learned"][name] = None
        vectoriser_of(model)["learned"][name] = None

    with pytest.raises(ModelFileError, match=f"cannot have learned '{name}'"):
        load_model(changed(words, learn))


def test_a_setting_is_no_function(words):
    def call(model):
        vectoriser_of(model)["settings"]["tokenizer"] = {"is": "dtype", "value": "float32"}

    with pytest.raises(ModelFileError, match="the setting tokenizer of CountVectorizer is no data"):
        load_model(changed(words, call))


def test_n_grams_have_a_limit(words):
    def lengthen(model):
        vectoriser_of(model)["settings"]["ngram_range"]["items"][1] = 10**6

    with pytest.raises(ModelFileError, match=r"n-grams of \(1, 1000000\) words are too long"):
        load_model(changed(words, lengthen))


@pytest.mark.parametrize(
    "idf", [[1.0, np.inf], [1.0], [[1.0, 2.0]], [1, 2]], ids=["infinite", "few", "square", "whole"]
)
def test_weights_of_words_are_numbers_one_for_each(idf, path):
    model = reference.paper(features=TfidfVectorizer(), random_state=0).fit(
        ["a red fox", "a fox"] * 8, [["x"], ["y"]] * 8
    )
    model.features_._tfidf.idf_ = np.array(idf)
    with pytest.raises((ValueError, ModelFileError), match="idf_ must"):
        model.save(path)


def test_a_cache_of_pickles_is_left_out(words, tmp_path):
    def cache(model):
        model["learned"]["features_"]["settings"]["memory"] = os.fspath(tmp_path)

    assert load_model(changed(words, cache)).features_.memory is None
    features = make_pipeline(CountVectorizer(dtype=np.float32), LogTfidfTransformer(), memory=os.fspath(tmp_path / "c"))
    model = reference.paper(features=features, random_state=0).fit(TEXTS, LISTS)
    model.save(words)
    assert os.fspath(tmp_path / "c") not in words.read_bytes().decode(errors="ignore")


@pytest.fixture
def refined(path):
    X = np.random.default_rng(0).normal(size=(40, 4))
    labels = [[f"label {number % 5}"] for number in range(40)]
    CompressedLabelClassifier("hadamard", "ridge", random_state=0).fit(X, labels).save(path)
    return path


def write_over(path, name, array):
    """Write other numbers into the place of an array of a model file."""
    content = bytearray(path.read_bytes())
    entries, _, data = parse(bytes(content))
    (name,) = (entry for entry in entries if entry.endswith(name))
    first, last = entries[name]["data_offsets"]
    assert last - first == array.nbytes
    start = len(content) - len(data) + first
    content[start : start + array.nbytes] = array.tobytes()
    path.write_bytes(content)


def test_starts_of_rows_that_fall_are_refused(refined):
    starts = load_model(refined).refiner_.ranker.weights.indptr.copy()
    starts[1:-1] = 10**6
    write_over(refined, "ranker.weights.indptr", starts)
    with pytest.raises(ModelFileError, match="a sparse matrix has an indptr that does not fit"):
        load_model(refined)


@pytest.mark.parametrize("scale", [0.0, 1e-320])
def test_probabilities_are_finite_whatever_the_scale_of_scores(refined, scale):
    f = len(load_model(refined).refiner_._pooled.scale)
    write_over(refined, "_pooled.scale", np.full(f, scale))
    if scale == 0:
        with pytest.raises(ModelFileError, match="must be positive"):
            load_model(refined)
    else:
        assert np.isfinite(load_model(refined).predict_topk(np.ones((2, 4)), 5).scores).all()
