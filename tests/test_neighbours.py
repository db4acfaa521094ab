"""The labels of similar rows, against cosines of all pairs; which models have neighbours, and which have none."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from refining import problem

from labelsense import CompressedLabelClassifier, ModelFileError, RidgeLearner, _kernels, load_model
from labelsense.refine import Refiner
from labelsense.refine.neighbours import MOST_MEASUREMENTS, SimilarFeatures, SimilarMeasurements
from labelsense.refine.sources import STRONGEST
from labelsense.refine.stage import as_rows


def mean_labels(new, known, Y, kind):
    """What neighbours say, by sorting all cosines."""
    new, known = (np.asarray(M, np.float64) for M in (new, known))
    lengths = [np.maximum(np.linalg.norm(M, axis=1, keepdims=True), 1e-300) for M in (new, known)]
    cosines = (new / lengths[0]) @ (known / lengths[1]).T
    out = np.zeros((len(new), Y.shape[1]))
    for i, row in enumerate(cosines):
        near = np.argsort(-row, kind="stable")[: kind.n_neighbours]
        weights = np.maximum(row[near], 0) ** kind.power
        if weights.sum() > 0:
            out[i] = weights @ Y.toarray()[near] / weights.sum()
    return out


def by_strongest(X):
    dense = X.toarray()
    kept = np.argsort(-np.abs(dense), axis=1, kind="stable")[:, :STRONGEST]
    strongest = np.zeros_like(dense)
    np.put_along_axis(strongest, kept, np.take_along_axis(dense, kept, 1), 1)
    return strongest


class TestNeighbours:
    @pytest.mark.parametrize("p", [30, 2000], ids=["dense", "sparse"])
    def test_similar_features(self, p):
        X, Y = problem(n=400, p=p)
        more = 0.1 * np.random.default_rng(0).uniform(size=(400, 30)).astype(np.float32)  # so that none are as similar
        X = as_rows(X + sp.csr_array(np.pad(more, ((0, 0), (0, p - 30)))))
        X[5] *= 0  # a row that is near to nothing
        source = SimilarFeatures.learn(X[:300], np.empty((300, 0)), Y[:300])
        assert sp.issparse(source.units) == (p == 2000)
        compared = by_strongest(X) if p == 2000 else X.toarray()
        new = np.array([5, *range(300, 400)])
        expected = mean_labels(compared[new], compared[:300], Y[:300], SimilarFeatures)
        np.testing.assert_allclose(source.scores(X[new], np.empty((101, 0))), expected, atol=2e-5)
        assert not expected[0].any()

    @pytest.mark.parametrize("m", [10, MOST_MEASUREMENTS + 10])
    def test_similar_measurements(self, m):
        X, Y = problem(n=300)
        H = np.random.default_rng(0).normal(size=(300, m)).astype(np.float32)
        source = SimilarMeasurements.learn(X[:200], H[:200], Y[:200])
        some = H[:, :MOST_MEASUREMENTS]
        expected = mean_labels(some[200:], some[:200], Y[:200], SimilarMeasurements)
        np.testing.assert_allclose(source.scores(X[200:], H[200:]), expected, atol=2e-5)

    def test_fewer_rows_than_neighbours(self):
        X, Y = problem(n=20)
        H = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
        for kind in (SimilarFeatures, SimilarMeasurements):
            expected = mean_labels(
                X.toarray() if kind is SimilarFeatures else H, X.toarray() if kind is SimilarFeatures else H, Y, kind
            )
            np.testing.assert_allclose(kind.learn(X, H, Y).scores(X, H), expected, atol=2e-5)

    def test_blocks_do_not_matter(self, monkeypatch):
        X, Y = problem(n=300)
        H = np.random.default_rng(0).normal(size=(300, 10)).astype(np.float32)
        source = SimilarMeasurements.learn(X, H, Y)
        whole = source.scores(X, H)
        monkeypatch.setattr("labelsense.refine.neighbours.COSINES", 7 * 300)
        np.testing.assert_allclose(source.scores(X, H), whole, atol=1e-6)

    def test_new_labels_are_those_of_no_row(self):
        X, Y = problem(n=50)
        source = SimilarFeatures.learn(X, np.empty((50, 0)), Y)
        H = np.empty((50, 0))
        wider = source.for_labels(40).scores(X, H)
        np.testing.assert_array_equal(wider, np.pad(source.scores(X, H), ((0, 0), (0, 10))))


@given(st.integers(0, 10**6), st.integers(1, 400))
def test_the_largest_of_rows_are_the_first_of_a_stable_sort(seed, n):
    random = np.random.default_rng(seed)
    values = random.integers(0, 50, (3, n)).astype(np.float32)
    k = int(random.integers(1, n + 1))
    places, found = np.empty((3, k), np.int32), np.empty((3, k), np.float32)
    _kernels.largest_of_rows(values, places, found)
    np.testing.assert_array_equal(places, np.sort(np.argsort(-values, axis=1, kind="stable")[:, :k]))
    np.testing.assert_array_equal(found, np.take_along_axis(values, places.astype(np.int64), 1))


@pytest.fixture(scope="module")
def rows():
    return problem(n=300, d=40, p=200)


class TestWhichModelsHaveNeighbours:
    def names(self, X, Y, **settings):
        model = CompressedLabelClassifier(**{"learner": RidgeLearner(1.0), "random_state": 0} | settings).fit(X, Y)
        return [source.name for source in model.refiner_._stage.neighbours], model

    def test_the_default_has(self, rows):
        names, model = self.names(*rows)
        assert names == ["rows with similar features", "rows with similar measurements"]
        assert set(names) < set(model.report_.judges)

    @pytest.mark.parametrize(
        "settings",
        [
            {"budget": "fast"},
            {"updatable": True},
            {"held_out": "last"},
            {"refiner": Refiner(neighbour_rows=299)},
        ],
        ids=["fast", "updatable", "in order", "too many rows"],
    )
    def test_others_have_none(self, settings, rows):
        assert self.names(*rows, **settings)[0] == []

    def test_rows_in_runs_have_none(self, rows):
        X, Y = (sp.csr_array(M[np.repeat(np.arange(60), 5)]) for M in rows)
        assert self.names(X, Y)[0] == []
        assert self.names(X, Y, held_out="rows")[0]

    def test_are_in_files(self, rows, tmp_path):
        X, Y = rows
        model = self.names(X, Y)[1]
        model.save(tmp_path / "model")
        np.testing.assert_array_equal(
            load_model(tmp_path / "model").predict_proba(X).toarray(), model.predict_proba(X).toarray()
        )

    @pytest.mark.parametrize("place", [0, 1])
    def test_that_do_not_fit_are_refused(self, place, rows, tmp_path):
        X, Y = rows
        model = self.names(X, Y)[1]
        neighbours = model.refiner_._stage.neighbours
        source = neighbours[place]
        neighbours[place] = type(source)(source.units[:, :-1], source.labels)
        model.save(tmp_path / "model")
        with pytest.raises(ModelFileError, match="neighbours must have"):
            load_model(tmp_path / "model")

    @pytest.mark.parametrize("bad", [-1, 2.5, "many"])
    def test_how_many_rows_is_a_count(self, bad, rows):
        with pytest.raises((ValueError, TypeError), match="neighbour_rows must be"):
            CompressedLabelClassifier(refiner=Refiner(neighbour_rows=bad)).fit(*rows)
