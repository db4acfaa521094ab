"""Data sets by name: from a folder, from the cache, from their homes; and what is said when they are nowhere."""

import http.server
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import real_data

from labelsense.data import Dataset, Examples, datasets, load_dataset, write_examples
from labelsense.data.datasets import PARTS, read_folder, registry
from labelsense.data.fetch import FetchError

RNG = np.random.default_rng(0)
DATA = Dataset(
    *(sp.csr_array((RNG.uniform(size=shape) < 0.3).astype(np.float32)) for shape in ((9, 5), (9, 3), (4, 5), (4, 3))),
    features=[f"word {i}" for i in range(5)],
    labels=["a", "b", "it's"],
)


def same(one, other):
    return all(np.array_equal(getattr(one, part).toarray(), getattr(other, part).toarray()) for part in PARTS)


@pytest.fixture(autouse=True)
def nowhere(tmp_path, monkeypatch):
    """Start with an empty cache and no folder of data sets."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("LABELSENSE_DATA", raising=False)


@pytest.fixture
def home(tmp_path):
    """Serve the data set as its home would, and return its entry."""
    folder = tmp_path / "home"
    folder.mkdir()
    for part in ("train", "test"):
        examples = Examples(getattr(DATA, f"X_{part}"), getattr(DATA, f"Y_{part}"), DATA.features, DATA.labels)
        write_examples(folder / f"toy-{part}.arff", examples)
    (folder / "toy-train.xml").rename(folder / "toy.xml")

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=folder)

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield {
            "home": "the home of toy",
            "fetch": f"http://127.0.0.1:{server.server_port}/",
            "train": "toy-train.arff",
            "test": "toy-test.arff",
            "header": "toy.xml",
            "sha256": DATA.sha256(),
        }
        server.shutdown()


def write_folder(folder):
    folder.mkdir(parents=True)
    for part in PARTS:
        sp.save_npz(folder / f"{part}.npz", getattr(DATA, part))


def test_any_folder_of_labelsense_data_is_a_data_set(tmp_path, monkeypatch):
    write_folder(tmp_path / "data" / "mine")
    monkeypatch.setenv("LABELSENSE_DATA", str(tmp_path / "data"))
    found = load_dataset("mine")
    assert same(found, DATA)
    assert found.labels == ["0", "1", "2"]
    (tmp_path / "data" / "mine" / "labels.txt").write_text("a\nb\nit's\n")
    assert load_dataset("mine").labels == DATA.labels


def test_too_few_names_are_refused(tmp_path):
    write_folder(tmp_path / "mine")
    (tmp_path / "mine" / "labels.txt").write_text("a\nb")
    with pytest.raises(ValueError, match="labels.txt must have one line per column, 3. Got 2"):
        read_folder(tmp_path / "mine")


def test_images_come_as_images(tmp_path):
    images = RNG.integers(0, 255, size=(6, 4, 4), dtype=np.uint8)
    np.savez(tmp_path / "images.npz", images=images)
    np.savez(tmp_path / "split.npz", train=[0, 2, 4], test=[1, 3, 5])
    sp.save_npz(tmp_path / "Y.npz", DATA.Y_train[:6])
    found = read_folder(tmp_path)
    assert np.array_equal(found.X_test, images[[1, 3, 5]])
    assert np.array_equal(found.Y_train.toarray(), DATA.Y_train[[0, 2, 4]].toarray())


class TestFetching:
    def test_from_home_into_the_cache_and_from_there_on(self, home, tmp_path, monkeypatch):
        monkeypatch.setattr(datasets, "registry", lambda: {"toy": home})
        fetched = load_dataset("toy")
        assert same(fetched, DATA)
        assert fetched.labels == DATA.labels
        assert [path.name for path in (tmp_path / "cache" / "labelsense").iterdir()] == ["toy"]
        home["fetch"] = "http://127.0.0.1:1/"
        assert same(load_dataset("toy"), DATA)

    def test_other_content_than_expected_is_not_kept(self, home, tmp_path, monkeypatch):
        monkeypatch.setattr(datasets, "registry", lambda: {"toy": home | {"sha256": "0" * 64}})
        with pytest.raises(FetchError, match="is not the data set that was tested: its sha256 is .* Nothing was kept"):
            load_dataset("toy")
        assert not list((tmp_path / "cache" / "labelsense").iterdir())

    def test_without_a_network_it_says_where_to_put_the_files(self, home, tmp_path, monkeypatch):
        monkeypatch.setattr(datasets, "registry", lambda: {"toy": home | {"fetch": "http://127.0.0.1:1/"}})
        with pytest.raises(FetchError, match="could not be fetched: .* get it from the home of toy .* X_train.npz"):
            load_dataset("toy")
        assert not list((tmp_path / "cache" / "labelsense").iterdir())

    def test_a_missing_file_is_no_data_set(self, home, monkeypatch):
        monkeypatch.setattr(datasets, "registry", lambda: {"toy": home | {"test": "nothing.arff"}})
        with pytest.raises(FetchError, match="nothing.arff could not be fetched: "):
            load_dataset("toy")


def test_one_that_has_to_be_put_there_by_hand_says_so():
    with pytest.raises(FileNotFoundError, match="eurlex4k is not on this machine, .* LABELSENSE_DATA"):
        load_dataset("eurlex4k")


def test_an_unknown_name():
    with pytest.raises(ValueError, match="name must be one of debtags, delicious.* Got 'mnist'"):
        load_dataset("mnist")


def test_the_checksum_is_of_the_numbers_not_of_how_they_are_stored():
    other = Dataset(*(getattr(DATA, part).tocsc().astype(np.float64) for part in PARTS), features=[], labels=[])
    assert other.sha256() == DATA.sha256()
    changed = DATA.X_test.copy()
    changed.data[0] = 2
    assert Dataset(DATA.X_train, DATA.Y_train, changed, DATA.Y_test, [], []).sha256() != DATA.sha256()


@pytest.mark.parametrize("name", [name for name, entry in registry().items() if "sha256" in entry])
def test_checksums_of_the_registry(name):
    data = Dataset(*real_data(name), features=[], labels=[])
    entry = registry()[name]
    assert data.sha256() == entry["sha256"]
    assert [data.X_train.shape[0], data.X_test.shape[0]] == entry["rows"]
    assert (data.X_train.shape[1], data.Y_train.shape[1]) == (entry["features"], entry["labels"])
