"""Estimators that skops stores: no files, nothing compressed, and only classes that it trusts."""

import io
import zipfile

import numpy as np
import pytest
import reference
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from stored import LISTS
from stored import path as path

from labelsense import OMPDecoder, _skops


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
