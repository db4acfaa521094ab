"""Chunks in files, and what is counted of them, against the same in memory."""

import contextlib
import functools
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp

from labelsense import LogTfidfTransformer
from labelsense._checkpoint import checkpoints_in
from labelsense.data import Examples, store
from labelsense.data.statistics import Count, Finish, Statistics, Tabulate
from labelsense.data.store import ChunkStore, gather, write_chunks
from labelsense.errors import FormatError
from labelsense.features import make_features, text_hashing, text_words
from labelsense.features.streams import StreamedFeatures
from labelsense.labels import Vocabulary

rng = np.random.default_rng(0)
WORDS = [f"word{j}" for j in range(300)]
TEXTS = [" ".join(rng.choice(WORDS, size=rng.integers(0, 30), p=np.arange(300, 0, -1) / 45150)) for _ in range(200)]
LISTS = [[f"é {j}" for j in np.flatnonzero(row)] for row in rng.uniform(size=(200, 12)) < 0.2]
COUNTS = sp.csr_array(rng.poisson(0.3, size=(200, 40)).astype(np.float32))
Y = sp.csr_array((rng.uniform(size=(200, 12)) < 0.2).astype(np.float32))


def batches(X, Y, size=30):
    return [Examples(X[a : a + size], Y[a : a + size]) for a in range(0, 200, size)]


def identity(chunk):
    return chunk


class TestStore:
    def test_chunks_come_back_as_they_were(self, tmp_path):
        chunks = write_chunks(tmp_path, batches(TEXTS, LISTS), Tabulate(StreamedFeatures(text_words())))
        assert chunks.lengths.tolist() == [30] * 6 + [20]
        for chunk, batch in zip(chunks.results(identity), batches(TEXTS, LISTS), strict=True):
            expected = Tabulate(StreamedFeatures(text_words()))(batch)
            assert (chunk.features, chunk.labels) == (expected.features, expected.labels)
            np.testing.assert_array_equal(chunk.X.toarray(), expected.X.toarray())
            np.testing.assert_array_equal(chunk.Y.toarray(), expected.Y.toarray())

    def test_what_is_there_is_kept(self, tmp_path):
        def stopping(batches, number):
            for i, batch in enumerate(batches):
                if i == number:
                    raise KeyboardInterrupt
                yield batch

        tabulate = Tabulate(StreamedFeatures(None))
        with pytest.raises(KeyboardInterrupt):
            write_chunks(tmp_path, stopping(batches(COUNTS, Y), 4), tabulate)
        first = tmp_path / "000000.safetensors"
        written = first.stat()
        chunks = write_chunks(tmp_path, batches(COUNTS, Y), tabulate)
        assert (first.stat().st_ino, first.stat().st_mtime_ns) == (written.st_ino, written.st_mtime_ns)
        assert (sp.vstack([chunk.X for chunk in chunks.results(identity)]) != COUNTS).nnz == 0
        assert write_chunks(tmp_path, [], tabulate).n_rows == 200  # nothing is read again

    def test_damage_is_found(self, tmp_path):
        write_chunks(tmp_path, batches(COUNTS, Y), Tabulate(StreamedFeatures(None)))
        path = tmp_path / "000002.safetensors"
        content = bytearray(path.read_bytes())
        content[-3] ^= 1
        path.write_bytes(content)
        with pytest.raises(FormatError, match=r"000002.safetensors is damaged \(its checksum is wrong\)"):
            list(ChunkStore(tmp_path).results(identity))

    def test_batches_are_put_together(self, monkeypatch):
        monkeypatch.setattr(store, "CHUNK_ROWS", 70)
        assert [len(chunk) for chunk in gather(batches(COUNTS, Y))] == [90, 90, 20]
        assert [len(chunk) for chunk in gather(batches(TEXTS, LISTS))] == [90, 90, 20]
        monkeypatch.setattr(store, "CHUNK_ENTRIES", COUNTS[:60].nnz)
        assert next(len(chunk) for chunk in gather(batches(COUNTS, Y))) == 60

    def test_maps_need_a_folder_and_keep_order(self, tmp_path):
        chunks = write_chunks(tmp_path / "raw", batches(COUNTS, Y), Tabulate(StreamedFeatures(None)))
        with checkpoints_in(tmp_path / "steps"):
            doubled = chunks.map(lambda chunk: Examples(2 * chunk.X, chunk.Y))
        assert abs(sp.vstack([chunk.X for chunk in doubled.results(identity)]) - 2 * COUNTS).max() == 0


def test_a_long_sum_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr("labelsense._checkpoint.EVERY", 0)
    monkeypatch.setattr("labelsense._checkpoint.SHARE", 0)
    chunks = write_chunks(tmp_path / "raw", batches(COUNTS, Y, 5), Tabulate(StreamedFeatures(None)))
    numbers = list(range(len(chunks.lengths)))
    seen = []

    def work(chunk, number, last=None):
        if number == last:
            raise KeyboardInterrupt
        seen.append(number)
        return (chunk.X.sum(axis=0) + 0.1 * number).astype(np.float32)

    expected = chunks.total(work, numbers)
    for last in (1, 9, 20):
        seen.clear()
        for stop in (last, None):
            with checkpoints_in(tmp_path / str(last)), contextlib.suppress(KeyboardInterrupt):
                found = chunks.long_total(functools.partial(work, last=stop), numbers, "sum")
        np.testing.assert_array_equal(found, expected)
        assert seen == numbers  # none of them twice


FORMS = {
    "words": (TEXTS, text_words()),
    "few words": (TEXTS, text_words(100)),
    "hashing": (TEXTS, text_hashing(64)),
    "counts": (COUNTS, LogTfidfTransformer()),
}


class TestStreamedFeatures:
    @pytest.mark.parametrize("form", FORMS)
    def test_equal_those_of_all_rows(self, form):
        X, transformer = FORMS[form]
        features = StreamedFeatures(transformer)
        chunks = list(map(Tabulate(features), batches(X, LISTS)))
        counted = sum(map(Count(features.max_words), chunks[1:]), Count(features.max_words)(chunks[0]))
        fitted = features.fit(counted.rows, counted.rows_with, counted.occurrences)
        expected = make_features(transformer).fit_transform(X)
        finish = Finish(features, counted.vocabulary())
        found = sp.vstack([finish(chunk).X for chunk in chunks])
        assert found.shape == expected.shape
        assert (found != expected).nnz == 0
        assert (fitted.transform(X) != expected).nnz == 0
        known, Y = Vocabulary.learn(LISTS)
        assert counted.vocabulary().names == known.names
        assert (sp.vstack([finish(chunk).Y for chunk in chunks]) != Y).nnz == 0
        np.testing.assert_array_equal(counted.label_counts(known), Y.sum(axis=0))

    def test_some_rows_count(self):
        chunk = Tabulate(StreamedFeatures(None))(Examples(COUNTS, Y))
        some = Count()(chunk, np.array([1, 5, 7]))
        assert (some.rows, some.label_entries) == (3, Y[[1, 5, 7]].nnz)
        np.testing.assert_array_equal(some.rows_with, (COUNTS[[1, 5, 7]] > 0).sum(axis=0))

    @pytest.mark.parametrize(
        "features", [make_features("images"), text_words().set_params(countvectorizer__min_df=2), text_words()[:1]]
    )
    def test_what_needs_all_rows_is_refused(self, features):
        with pytest.raises(ValueError, match="features must be 'words', 'hashing', 'counts' or None for rows that"):
            StreamedFeatures(features)

    def test_texts_without_words(self):
        features = StreamedFeatures(text_words())
        counted = Count()(Tabulate(features)(Examples(["", "a"], [["x"], ["y"]])))
        with pytest.raises(ValueError, match="X has no words"):
            features.fit(counted.rows, counted.rows_with, counted.occurrences)


def count(words, most_words):
    counts = Counter(words)
    return Statistics(1, 0, 0, Counter(), Counter(dict.fromkeys(counts, 1)), counts, True, most_words)


class TestStatistics:
    def test_frequent_words_survive_a_limit(self):
        shares = 1 / np.arange(1, 3001)
        words = [f"w{j}" for j in rng.choice(3000, size=40_000, p=shares / shares.sum())]
        parts = [words[a : a + 1000] for a in range(0, 40_000, 1000)]
        limited = sum((count(part, 500) for part in parts[1:]), count(parts[0], 500))
        assert len(limited.occurrences) <= 500 < len(set(words))
        for word, number in Counter(words).most_common(50):
            assert 0.9 * number <= limited.occurrences[word] <= number
        assert limited.rows_with.keys() == limited.occurrences.keys()

    def test_ties_do_not_outlive_the_limit(self):
        assert len((count(WORDS, 100) + count(WORDS, 100)).occurrences) == 50

    def test_parts_of_other_widths(self):
        wide, narrow = Count()(Examples(COUNTS, Y)), Count()(Examples(COUNTS[:, :7], Y[:, :3]))
        np.testing.assert_array_equal((narrow + wide).rows_with, np.pad(narrow.rows_with, (0, 33)) + wide.rows_with)
        assert (narrow + wide).vocabulary().n_labels == 12

    def test_names_and_numbers_do_not_mix(self):
        tabulate = Tabulate(StreamedFeatures(None))
        named = Count()(tabulate(Examples(COUNTS, LISTS)))
        assert (named + Count()(tabulate(Examples(COUNTS, None)))).vocabulary().names == named.vocabulary().names
        with pytest.raises(
            FormatError, match="Some parts of the data have labels with names, and others labels with n"
        ):
            named + Count()(tabulate(Examples(COUNTS, Y)))
