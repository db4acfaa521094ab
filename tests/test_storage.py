"""The registry of classes that a model file may hold, and the plain values in it."""

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from labelsense import RidgeLearner
from labelsense._storage import BY_CLASS, REGISTRY, is_plain, storable
from labelsense._tree import Decoder, Encoder


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
    kept = {"n_features_in_", "_flat", "_solution", "_moments", "alpha_", "solver_", "n_iter_"}
    assert set(tree["learned"]) == kept


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
