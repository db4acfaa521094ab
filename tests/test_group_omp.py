"""Groups of labels: equal to the slow version, better than OMP where labels come in groups, found in training."""

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from conftest import COMPRESSORS, decode, dense, make_operator, planted
from hypothesis import given
from hypothesis import strategies as st

from labelsense import GroupOMPDecoder, HadamardCompressor, OMPDecoder, RidgeLearner
from labelsense.reconstruct import hierarchy_groups
from labelsense.reconstruct.group_omp import cooccurring


def in_groups(n, groups, d, rng, per_row=2):
    """Return label vectors that are unions of groups."""
    Y = np.zeros((n, d))
    for y in Y:
        for g in rng.choice(len(groups), per_row, replace=False):
            y[groups[g]] = rng.uniform(0.5, 1.5, len(groups[g]))
    return Y


def blocks(d, size):
    return [list(range(start, start + size)) for start in range(0, d, size)]


@pytest.mark.parametrize("compressor", COMPRESSORS)
def test_equals_the_slow_version(compressor):
    differ = 0
    for seed in range(25):
        operator = make_operator(compressor, 120, 36, seed)
        A, rng = dense(operator), np.random.default_rng(seed)
        groups = [rng.choice(120, rng.integers(1, 6), replace=False).tolist() for _ in range(30)]  # they overlap
        H, _ = planted(A, 5, 4, noise=0.5, seed=seed)
        got, plain = decode(GroupOMPDecoder(groups, 10), operator, H), decode(OMPDecoder(10), operator, H)
        for h, y in zip(H.astype(np.float64), got, strict=True):
            np.testing.assert_allclose(y, reference.group_omp(A, h, 10, groups), atol=1e-4)
        differ += ((got != 0) != (plain != 0)).any(axis=1).sum()
    assert differ > 50


def test_beats_omp_where_labels_come_in_groups_and_measurements_are_few():
    # 20 % of the rows of A, for vectors with 10 of 200 labels in two groups.
    d, m, groups = 200, 40, blocks(200, 5)
    operator = make_operator(HadamardCompressor, d, m)
    rng = np.random.default_rng(0)
    Y = in_groups(300, groups, d, rng)
    H = Y @ dense(operator).T
    H = (H + 0.1 * np.linalg.norm(H, axis=1, keepdims=True) * rng.normal(size=H.shape) / np.sqrt(m)).astype(np.float32)
    exact = {}
    for name, decoder in (("groups", GroupOMPDecoder(groups, 10)), ("labels", OMPDecoder(10))):
        exact[name] = (((decode(decoder, operator, H)) != 0) == (Y != 0)).all(axis=1).mean()
    assert exact["groups"] > 0.8 > 0.3 > exact["labels"]


def test_without_groups_it_is_omp():
    operator = make_operator(HadamardCompressor, 150, 40)
    H, _ = planted(dense(operator), 5, 50, noise=0.5, seed=0)
    np.testing.assert_array_equal(decode(GroupOMPDecoder([], 8), operator, H), decode(OMPDecoder(8), operator, H))


@given(seed=st.integers(0, 10**6), size=st.integers(1, 12))
def test_a_group_that_does_not_fit_is_not_taken(seed, size):
    operator = make_operator(HadamardCompressor, 60, 30, seed % 20)
    H, _ = planted(dense(operator), 6, 10, noise=0.3, seed=seed)
    out = decode(GroupOMPDecoder(blocks(60, 4), size), operator, H)
    assert ((out != 0).sum(axis=1) <= size).all()
    np.testing.assert_allclose(
        np.linalg.norm(dense(operator).T @ (H - out @ dense(operator).T).T * (out != 0).T, axis=0), 0, atol=1e-4
    )


class TestCooccurrence:
    def test_labels_that_come_together_at_least_as_often_as_apart(self):
        Y = np.zeros((12, 8), int)
        Y[:4, [0, 1]] = 1  # always
        Y[4:8, 2], Y[6:10, 3] = 1, 1  # 2 rows together, 4 apart
        Y[4:8, 4], Y[5:8, 5] = 1, 1  # 3 together, 1 apart; with label 2 too
        Y[11, [6, 7]] = 1  # a single row
        assert _lists(cooccurring(sp.csr_array(Y))) == [[0, 1], [2, 4, 5]]

    def test_groups_are_bounded_and_the_strongest_pairs_come_first(self):
        Y = np.zeros((40, 20), int)
        Y[:30] = 1
        Y[30:40, [18, 19]] = 1  # even more often together than with the others
        groups = _lists(cooccurring(sp.csr_array(Y)))
        assert [len(group) for group in groups] == [8, 8, 4]
        assert any({18, 19} <= set(group) for group in groups)

    @given(seed=st.integers(0, 10**6))
    def test_equals_a_slow_search_for_pairs(self, seed):
        rng = np.random.default_rng(seed)
        Y = (rng.uniform(size=(15, 10)) < 0.3).astype(int)
        group = {j: {j} for j in range(10)}
        pairs = []
        for i in range(10):
            for j in range(i):
                both, either = (Y[:, i] & Y[:, j]).sum(), (Y[:, i] | Y[:, j]).sum()
                if both >= 2 and both >= either - both:
                    pairs.append((-both / either, j, i))
        for _, j, i in sorted(pairs):
            merged = group[i] | group[j]
            if len(merged) <= 8:
                group.update(dict.fromkeys(merged, merged))
        expected = sorted({tuple(sorted(labels)) for labels in group.values() if len(labels) > 1})
        assert _lists(cooccurring(sp.csr_array(Y))) == list(map(list, expected))

    def test_blocks_of_labels_change_nothing(self, monkeypatch):
        Y = sp.csr_array(np.random.default_rng(0).uniform(size=(50, 30)) < 0.4)
        whole = _lists(cooccurring(Y))
        monkeypatch.setattr("labelsense.reconstruct.group_omp.BLOCK_PAIRS", 100)
        assert _lists(cooccurring(Y)) == whole

    def test_the_classifier_hands_it_the_labels(self):
        rng = np.random.default_rng(0)
        groups = blocks(100, 5)
        Y = (in_groups(400, groups, 100, rng) > 0).astype(int)
        X = Y + 0.1 * rng.normal(size=Y.shape)
        scores = {}
        for word in ("group_omp", "omp"):
            clf = reference.paper(HadamardCompressor(24), RidgeLearner(1.0), word, random_state=0)
            scores[word] = clf.fit(X[:300], Y[:300]).evaluate(X[300:], Y[300:], [5])["P@5"]
            if word == "group_omp":
                assert _lists(clf.decoder_.groups_) == groups
        assert scores["group_omp"] > scores["omp"] + 0.2

    def test_new_labels_are_in_no_group(self):
        Y = np.tile([[1, 1, 0, 1], [0, 0, 1, 0]], (10, 1))
        X = np.eye(2)[[0, 1] * 10]
        clf = reference.paper(HadamardCompressor(4, reserve=4), "ridge", "group_omp", random_state=0)
        clf.partial_fit(X, [[f"tag{j}" for j in row.nonzero()[0]] for row in Y])
        clf.partial_fit(X[:2], [["tag0", "new"], ["tag2"]])
        assert clf.predict_scores(X).shape == (20, 5)


def _lists(groups):
    return [groups.indices[start:stop].tolist() for start, stop in zip(groups.indptr, groups.indptr[1:], strict=False)]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([[0, 1], [2, 60]], r"groups must be lists of label columns from 0 to 59. Got \[2, 60\] as group 1"),
        ([[-1]], "from 0 to 59"),
        ([["a"]], "lists of label columns"),
        ([[0.5]], "lists of label columns"),
        ("cooccurrence", r"groups='cooccurrence' needs the labels: call fit_labels\(Y\) first"),
    ],
)
def test_refusals(groups, message):
    decoder = GroupOMPDecoder(groups)
    operator = make_operator(HadamardCompressor, 60, 30)
    with pytest.raises(ValueError, match=message):
        decoder.decode(decoder.prepare(operator), np.zeros((1, 30)))


def test_refuses_a_word_it_does_not_know_and_too_few_labels():
    Y = sp.csr_array(np.eye(60))
    with pytest.raises(ValueError, match="groups must be one of 'cooccurrence'.*Got 'hierarchy'"):
        GroupOMPDecoder("hierarchy").fit_labels(Y)
    decoder = GroupOMPDecoder([[0, 1]]).fit_labels(Y)
    with pytest.raises(ValueError, match="The groups are of 60 labels, and A has 30"):
        decode(decoder, make_operator(HadamardCompressor, 30, 20), np.zeros((1, 20)))


class TestHierarchy:
    LABELS = ("a", "a/b", "a/b/c", "a/d", "e")

    def test_a_group_is_a_label_and_those_above_it(self):
        broader = {"a/b/c": "a/b", "a/b": "a", "a/d": "a", "a": None}
        assert hierarchy_groups(broader, self.LABELS) == [[1, 0], [2, 1, 0], [3, 0]]

    def test_several_parents_and_circles(self):
        broader = {"a": ["e", "a/d"], "e": {"a"}}
        assert hierarchy_groups(broader, self.LABELS) == [[0, 4, 3], [4, 0, 3]]

    def test_labels_without_column_are_passed_through(self):
        assert hierarchy_groups({"a": "unknown", "unknown": "e"}, self.LABELS) == [[0, 4]]

    def test_tuples_and_numbers_are_labels(self):
        assert hierarchy_groups({2: (1, "x"), (1, "x"): 0}, [0, 2, (1, "x")]) == [[1, 2, 0], [2, 0]]

    def test_a_long_way_up_is_cut(self):
        assert hierarchy_groups({i: i - 1 for i in range(1, 20)}, range(20))[-1] == list(range(19, 11, -1))

    def test_the_decoder_finds_labels_with_those_above_them_by_fewer_measurements(self):
        # Rows have leaves of a tree, and with each leaf its three ancestors.
        rng = np.random.default_rng(0)
        broader = {i: (i - 1) // 4 for i in range(1, 341)}
        groups = hierarchy_groups(broader, range(341))
        leaves = [group for group in groups if group[0] >= 85]
        Y = np.zeros((100, 341))
        for y in Y:
            for i in rng.choice(len(leaves), 2, replace=False):
                y[leaves[i]] = 1
        operator = make_operator(HadamardCompressor, 341, 28)
        H = Y @ dense(operator).T
        found = {}
        for decoder in (OMPDecoder(10), GroupOMPDecoder(groups, 10)):
            found[type(decoder)] = ((decode(decoder, operator, H) != 0) & (Y == 1)).sum() / Y.sum()
        assert found[GroupOMPDecoder] > found[OMPDecoder] + 0.1
