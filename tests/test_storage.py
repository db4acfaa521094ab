"""What a model file may hold, and what made-up ones are refused for: every number and name of every class is tried."""

import contextlib
import copy
import io
import json
import os
import struct
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from labelsense import (
    HadamardCompressor,
    KernelRidgeLearner,
    LogTfidfTransformer,
    ModelFileError,
    OMPDecoder,
    RBFKernel,
    RidgeLearner,
    _skops,
    load_model,
)
from labelsense._storage import BY_CLASS, REGISTRY, is_plain, storable
from labelsense._tree import PLAIN, Decoder, Encoder
from labelsense.regress import kernel_ridge

FORMAT1 = Path(__file__).parent / "data" / "format1"
STORED = json.loads((FORMAT1 / "predictions.json").read_text())
NAMES = sorted(STORED["models"])
TEXTS, LISTS = ["a red fox", "a blue hen", "red and blue", "a hen and a fox"] * 5, [["fox"], ["hen"], ["x"], ["y"]] * 5


def parse(content):
    """Return the entries of the arrays, the tree and the arrays of a model file."""
    length = struct.unpack("<Q", content[:8])[0]
    entries = json.loads(content[8 : 8 + length])
    return entries, json.loads(entries.pop("__metadata__")["labelsense"]), content[8 + length :]


def build(entries, top, data):
    header = json.dumps({**entries, "__metadata__": {"labelsense": json.dumps(top)}}).encode()
    return struct.pack("<Q", len(header)) + header + data


def changed(path, change):
    """Write a model file again with its tree changed."""
    entries, top, data = parse(path.read_bytes())
    change(top["model"])
    path.write_bytes(build(entries, top, data))
    return path


def nodes(tree, path=()):
    """Yield everything inside a tree as (container, key, path)."""
    for key, item in list(tree.items() if isinstance(tree, dict) else enumerate(tree)):
        yield tree, key, (*path, key)
        if isinstance(item, (dict, list)):
            yield from nodes(item, (*path, key))


def row_for(name):
    """Return a row that the stored model of this name takes."""
    kind = STORED["models"][name]["rows"]
    rows = STORED["rows"]["dense" if kind == "sparse" else kind][:1]
    if kind == "texts":
        return rows
    rows = np.array(rows, np.uint8 if kind == "images" else np.float64)
    return sp.csr_array(rows) if kind == "sparse" else rows


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tags.model"


@pytest.fixture
def words(path):
    reference.paper(features="words", random_state=0).fit(TEXTS, LISTS).save(path)
    return path


@pytest.fixture
def ridge(path):
    path.write_bytes((FORMAT1 / "ridge.model").read_bytes())
    return path


# --- random changes -----------------------------------------------------------------------------------------------

VALUES = st.one_of(
    st.sampled_from(
        [None, True, False, 0, 1, -1, 24, 32, 2**24, 2**28, 2**31, 2**40, 2**62, 10**30, 0.5, -1e300, 1e300]
    ),
    st.sampled_from([float("nan"), float("inf"), "", "x", "auto", "loo", "filename", "passthrough", [], {}, [1], [[]]]),
    st.sampled_from(
        [{"is": "dtype", "value": "float32"}, {"is": "tuple", "items": []}, {"is": "float", "value": "nan"}]
    ),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
)


def change_tree(draw, entries, top):
    found = list(nodes(top["model"]))
    tree, key, _ = draw(st.sampled_from(found))
    kind = draw(st.sampled_from(["value", "number", "copy", "delete", "name", "class", "kind", "shape", "swap"]))
    names = sorted(entries)
    if kind == "value":
        tree[key] = copy.deepcopy(draw(VALUES))
    elif kind == "number" and isinstance(tree[key], int):
        tree[key] = tree[key] * draw(st.sampled_from([2, 10, -1, 10**6])) + draw(st.integers(-1, 1))
    elif kind == "copy":
        other, where, _ = draw(st.sampled_from(found))
        tree[key] = copy.deepcopy(other[where])
    elif kind == "delete":
        del tree[key]
    elif kind == "name" and isinstance(tree, dict):
        tree[draw(st.sampled_from(sorted({where for _, where, _ in found if isinstance(where, str)})))] = tree.pop(key)
    elif kind == "class":
        tree, key, _ = draw(st.sampled_from([node for node in found if node[1] == "is"]))
        tree[key] = draw(st.sampled_from([*REGISTRY, *PLAIN]))
    elif kind == "kind":
        entries[draw(st.sampled_from(names))]["dtype"] = draw(
            st.sampled_from(["F64", "F32", "I64", "I32", "U8", "BOOL"])
        )
    elif kind == "shape":
        entry = entries[draw(st.sampled_from(names))]
        size = int(np.prod(entry["shape"]))
        entry["shape"] = draw(st.sampled_from([[size], [1, size], [size, 1], entry["shape"][::-1], [size // 2, 2]]))
    elif kind == "swap":
        one, other = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        entries[one], entries[other] = entries[other], entries[one]


def load_and_predict(path, name, mmap=False):
    """Load a file that may say anything: it is refused, or it predicts a row, or refuses it."""
    model = cause = None
    try:
        model = load_model(path, mmap=mmap)
    except ModelFileError as error:
        cause = error.__cause__
    assert not isinstance(cause, MemoryError)
    # It may want another number of features, texts or no texts; its measurements may not be finite.
    with contextlib.suppress(ValueError, TypeError), np.errstate(all="ignore"):
        if model is not None:
            model.predict_topk(row_for(name), 3)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=30)  # of each model; `make fuzz` tries more
@given(data=st.data())
def test_a_file_whose_tree_was_changed_predicts_or_is_refused(name, data, tmp_path_factory):
    entries, top, arrays = parse((FORMAT1 / f"{name}.model").read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        change_tree(data.draw, entries, top)
    path = tmp_path_factory.mktemp("made-up") / "tags.model"
    path.write_bytes(build(entries, top, arrays))
    load_and_predict(path, name, mmap=data.draw(st.booleans()))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_a_file_cut_off_or_changed_anywhere_predicts_or_is_refused(name, data, tmp_path_factory):
    content = bytearray((FORMAT1 / f"{name}.model").read_bytes())
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    else:
        for _ in range(data.draw(st.integers(1, 5))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("broken") / "tags.model"
    path.write_bytes(content)
    load_and_predict(path, name)


CHILD = """
    import resource, sys, warnings
    from pathlib import Path
    warnings.simplefilter("ignore")
    from labelsense import ModelFileError, load_model
    load_model(sys.argv[1] + "/ridge.model")  # whatever is only loaded once
    start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    resource.setrlimit(resource.RLIMIT_AS, (6 * 10**9,) * 2)
    for path in sorted(Path(sys.argv[2]).iterdir()):
        try:
            load_model(path)
        except ModelFileError as error:
            if isinstance(error.__cause__, MemoryError):
                print(path.name, "tried to allocate")
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start) // 1000)
"""


def test_no_number_of_a_header_makes_a_small_file_take_much_memory(tmp_path):
    for name in sorted({*NAMES} - {"ridge_loo", "devore", "sklearn"}):  # which hold what others hold, or skops does
        content = (FORMAT1 / f"{name}.model").read_bytes()
        _, top, _ = parse(content)
        numbers = [place for tree, key, place in nodes(top["model"]) if type(tree[key]) is int]
        groups = {tuple("#" if isinstance(step, int) else step for step in place): place for place in numbers}
        for i, place in enumerate(groups.values()):
            for number in (2**24, 2**31):
                entries, top, arrays = parse(content)
                # A number that is in several places, such as that of the features, is changed in all of them.
                old = value_at(top["model"], place)
                for tree, key, _ in list(nodes(top["model"])):
                    if type(tree[key]) is int and (tree[key] == old or (key == "order" and place[-1] == "n_labels")):
                        tree[key] = number
                (tmp_path / f"{name}-{i}-{number}").write_bytes(build(entries, top, arrays))
    program = [sys.executable, "-c", textwrap.dedent(CHILD), os.fspath(FORMAT1), os.fspath(tmp_path)]
    answer = subprocess.run(program, capture_output=True, text=True, check=True)
    assert int(answer.stdout) < 300, answer.stdout  # megabytes


def value_at(tree, place):
    for step in place:
        tree = tree[step]
    return tree


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


def test_a_cache_of_pickles_is_left_out(words, tmp_path):
    def cache(model):
        model["learned"]["features_"]["settings"]["memory"] = os.fspath(tmp_path)

    assert load_model(changed(words, cache)).features_.memory is None
    features = make_pipeline(CountVectorizer(dtype=np.float32), LogTfidfTransformer(), memory=os.fspath(tmp_path / "c"))
    model = reference.paper(features=features, random_state=0).fit(TEXTS, LISTS)
    model.save(words)
    assert os.fspath(tmp_path / "c") not in words.read_bytes().decode(errors="ignore")


# --- estimators that skops stores ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (
            make_pipeline(TfidfVectorizer(input="filename"), MaxAbsScaler()),
            "a TfidfVectorizer with input='filename' reads",
        ),
        (
            ColumnTransformer([("text", CountVectorizer(input="file"), 0)]),
            "a CountVectorizer with input='file' reads files",
        ),
        ([make_pipeline(MaxAbsScaler(), memory="/tmp/cache")], "a Pipeline with memory='/tmp/cache' writes files"),
    ],
    ids=["in a pipeline", "in columns", "a cache"],
)
def test_foreign_estimators_that_use_files_are_refused(estimator, message):
    skops = pytest.importorskip("skops.io")
    with pytest.raises(ValueError, match=f"The model cannot be saved: in model.features, {message}"):
        _skops.dump(estimator, "model.features")
    with pytest.raises(ValueError, match=message):
        _skops.load(skops.dumps(estimator))


def test_what_skops_does_not_trust_is_refused_when_it_is_saved(path):
    class OwnDecoder(OMPDecoder):
        pass

    model = reference.paper(decoder=OwnDecoder(), random_state=0).fit(np.eye(20), LISTS)
    with pytest.raises(
        TypeError, match="cannot be saved: model.decoder holds .*OwnDecoder, which skops does not trust"
    ):
        model.save(path)


def test_foreign_estimators_are_not_compressed():
    skops = pytest.importorskip("skops.io")
    model = LinearRegression().fit(np.zeros((2, 1000)), [1.0, 2.0])
    np.testing.assert_array_equal(_skops.load(_skops.dump(model, "")).coef_, model.coef_)
    with pytest.raises(ValueError, match="what skops stored is compressed"):
        _skops.load(skops.dumps(model, compression=zipfile.ZIP_DEFLATED))


def test_foreign_classes_that_are_not_there_are_refused():
    skops = pytest.importorskip("skops.io")
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(skops.dumps(LinearRegression()))) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b"LinearRegression", b"LinearDepression"))
    with pytest.raises(Exception, match="Depression") as raised:
        _skops.load(changed.getvalue())
    assert not isinstance(raised.value, ImportError)


# --- the registry -------------------------------------------------------------------------------------------------


def test_only_classifiers_are_models():
    assert {name for name, entry in REGISTRY.items() if entry.root} == {
        "CompressedLabelClassifier",
        "OneVsAllClassifier",
        "ECOCClassifier",
        "SECOCClassifier",
    }


def test_a_class_can_have_another_name_in_files_and_share_it(monkeypatch):
    class Base:
        def __init__(self, size):
            self.size = size

        def _to_parts(self):
            return {"size": self.size}

        @classmethod
        def _from_parts(cls, parts):
            return Many(parts["size"]) if parts["size"] > 1 else One(1)

    class One(Base):
        pass

    class Many(Base):
        pass

    for cls in (One, Many):
        monkeypatch.setitem(BY_CLASS, cls, None)  # to be taken out again
        monkeypatch.setitem(REGISTRY, "Some", None)
        storable(name="Some")(cls)
    for thing in (One(1), Many(3)):
        tree = Encoder().encode(thing, "thing")
        assert tree == {"is": "Some", "parts": {"size": thing.size}}
        assert type(Decoder({}.pop).decode(tree)) is type(thing)


def test_what_is_made_when_needed_is_not_stored():
    model = RidgeLearner().fit(np.eye(4), np.eye(4))
    model._anything = model.note = object()
    tree = Encoder().encode(model, "model")
    assert set(tree["learned"]) == {"n_features_in_", "_flat", "_solution", "_moments", "alpha_", "solver_", "n_iter_"}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: (
            st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text() | st.tuples(st.integers()), inner)
        ),
    )
)
def test_plain_values_come_back(value):
    encoder = Encoder()
    tree = json.loads(json.dumps(encoder.encode(value, "value")))
    again = Decoder(encoder.arrays.pop).decode(tree)
    assert again == value
    assert repr(again) == repr(value)


def test_labels_are_plain():
    assert all(map(is_plain, ["a", 1, 1.5, True, ("a", (1, 2))]))
    assert not any(map(is_plain, [b"a", None, ["a"], ("a", [1]), frozenset(), object()]))
