"""The journal has every update that was acknowledged, and survives a process that was killed while it wrote."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelsense.errors import FormatError
from labelsense.serve.journal import Journal


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.journal"


def reopened(path):
    journal = Journal(path)
    entries = journal.after(0)
    journal.close()
    return journal, entries


def test_updates_are_numbered_and_come_back(path):
    journal = Journal(path)
    assert journal.append([{"step": "learn", "text": "ä\n"}]) == [1]
    assert journal.append([{"step": "learn"}, {"step": "forget"}]) == [2, 3]
    assert journal.after(1) == [{"n": 2, "step": "learn"}, {"n": 3, "step": "forget"}]
    journal.close()
    again, entries = reopened(path)
    assert again.id == journal.id
    assert entries == [{"n": 1, "step": "learn", "text": "ä\n"}, {"n": 2, "step": "learn"}, {"n": 3, "step": "forget"}]


def test_only_a_journal_that_is_saved_whole_is_emptied(path):
    journal = Journal(path)
    journal.append([{"a": 1}, {"a": 2}])
    journal.trim(1)
    assert len(journal.after(0)) == 2
    journal.trim(2)
    assert journal.after(0) == []
    assert journal.append([{"a": 3}]) == [3]
    journal.close()
    again, entries = reopened(path)
    assert (again.start, entries) == (2, [{"n": 3, "a": 3}])


@given(st.data())
def test_a_file_cut_off_anywhere_has_the_updates_that_were_whole(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("journal") / "journal"
    journal = Journal(path)
    ends = []
    for i in range(4):
        journal.append([{"text": "x" * i}])
        ends.append(path.stat().st_size)
    journal.close()
    content = path.read_bytes()
    cut = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:cut] + data.draw(st.sampled_from([b"", b"\0", b"garbage"])))
    again, entries = reopened(path)
    assert len(entries) == sum(end <= cut for end in ends)
    assert again.last == len(entries)
    journal = Journal(path)  # and it can be gone on with
    assert journal.append([{"text": "more"}]) == [len(entries) + 1]
    journal.close()
    assert reopened(path)[1][-1]["text"] == "more"


def test_damage_before_the_end_is_refused(path):
    journal = Journal(path)
    journal.append([{"text": "first"}, {"text": "second"}])
    journal.close()
    path.write_bytes(path.read_bytes().replace(b"first", b"fIrst"))
    with pytest.raises(FormatError, match="is damaged at line 2"):
        Journal(path)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([b'{"journal":"ab","start":0}', b"{1}", b'{"n":2}'], "is damaged at line 2"),
        ([b'{"journal":"ab","start":0}', b"[]", b'{"n":2}'], "is damaged at line 2"),
        ([b'{"journal":"ab","start":"0"}', b'{"n":1}'], "does not number its updates"),
        ([b'{"n":1}', b'{"n":2}'], "does not number its updates"),
        ([b'{"journal":"ab","start":0}', b'{"n":1}', b'{"n":3}'], "does not number its updates"),
    ],
)
def test_lines_of_others_are_refused_though_their_checksums_are_right(lines, message, path):
    path.write_bytes(b"".join(b"%08x %s\n" % (zlib.crc32(line), line) for line in lines))
    before = path.read_bytes()
    with pytest.raises(FormatError, match=message):
        Journal(path)
    assert path.read_bytes() == before


def test_a_journal_is_for_one_process(path):
    journal = Journal(path)
    with pytest.raises(FormatError, match="another server learns"):
        Journal(path)
    journal.close()
    Journal(path).close()


def test_after_an_error_of_the_disk_nothing_of_the_update_is_left(path, monkeypatch):
    journal = Journal(path)
    journal.append([{"text": "first"}])
    size = path.stat().st_size

    def fail(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("labelsense.serve.journal.os.fsync", fail)
        with pytest.raises(OSError, match="No space"):
            journal.append([{"text": "second"}])
    assert path.stat().st_size == size
    assert journal.append([{"text": "third"}]) == [2]
    journal.close()
    assert [entry["text"] for entry in reopened(path)[1]] == ["first", "third"]
