"""Files that are there whole or not at all, whatever is in their place."""

import errno
import os
import resource
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from labelsense import _files
from labelsense._files import check_writable, replacing

ALONE = f"import runpy; replacing = runpy.run_path({_files.__file__!r})['replacing']\n"  # starts ten times faster


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a [1].txt"  # brackets mean something to glob


def write(path, text="new"):
    with replacing(path) as temporary:
        temporary.write_text(text)


def names(folder):
    return sorted(os.listdir(folder))


def test_a_new_file_has_the_mode_of_any_new_file(path):
    old = os.umask(0o027)
    try:
        write(path)
    finally:
        os.umask(old)
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o640)
    assert names(path.parent) == [path.name]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_a_file_keeps_its_mode_and_is_private_while_it_is_written(mode, path):
    path.write_text("old")
    path.chmod(mode)
    with replacing(path) as temporary:
        assert stat.S_IMODE(temporary.stat().st_mode) == 0o600
        temporary.write_text("new")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", mode)


def test_a_file_keeps_its_owner(path, monkeypatch):
    path.write_text("old")
    given = []
    monkeypatch.setattr(os, "chown", lambda name, *owner: given.append((name.name.endswith(".tmp"), *owner)))
    write(path)
    assert given == [(True, path.stat().st_uid, path.stat().st_gid)]  # only root can give files away


def test_an_owner_that_cannot_be_kept_is_given_up(path, monkeypatch):
    def refuse(*arguments):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    path.write_text("old")
    path.chmod(0o604)
    monkeypatch.setattr(os, "chown", refuse)
    write(path)
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o604)


@pytest.mark.parametrize("there", [True, False], ids=["a file", "nothing yet"])
def test_a_link_stays_and_its_target_is_written(there, tmp_path):
    (tmp_path / "links").mkdir()
    (tmp_path / "files").mkdir()
    link, real = tmp_path / "links" / "link", tmp_path / "files" / "real"
    if there:
        real.write_text("old")
    link.symlink_to("../files/real")
    write(link)
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert (names(link.parent), names(real.parent)) == (["link"], ["real"])


def test_a_pipe_gets_the_bytes(path):
    os.mkfifo(path)
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # which waits for no writer
    os.set_blocking(handle, True)
    got = []
    writer = threading.Thread(target=write, args=(path, "x" * 100_000))  # more than a pipe holds
    with open(handle) as reader:
        writer.start()
        while not got:
            got = [text] if (text := reader.read()) else []
    writer.join()
    assert got == ["x" * 100_000]
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert names(path.parent) == [path.name]


def test_a_pipe_that_nobody_reads_is_refused(path):
    os.mkfifo(path)
    with pytest.raises(OSError, match=r"No such device or address: .*a \[1\].txt"):
        write(path)
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_a_device_is_written_to():
    before = os.stat(os.devnull)
    write(os.devnull)
    assert os.stat(os.devnull).st_ino == before.st_ino
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        write("/dev/full")


def test_standard_output_can_be_named(tmp_path):
    program = "with replacing('/dev/stdout') as name: name.write_text('new')"
    answer = subprocess.run(
        [sys.executable, "-c", ALONE + program], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert answer.stdout == "new"


@pytest.mark.parametrize("write", [check_writable, write], ids=["check", "write"])
class TestPlacesThatCannotBeWrittenTo:
    def test_a_folder(self, write, tmp_path):
        with pytest.raises(IsADirectoryError, match=str(tmp_path)):
            write(tmp_path)

    def test_no_folder(self, write, tmp_path):
        with pytest.raises(FileNotFoundError, match="nowhere/a"):
            write(tmp_path / "nowhere" / "a")

    def test_a_file_for_a_folder(self, write, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(NotADirectoryError, match="file/a"):
            write(tmp_path / "file" / "a")

    def test_a_folder_that_is_not_ours(self, write, tmp_path, monkeypatch):
        monkeypatch.setattr(os, "access", lambda place, mode: place != tmp_path)  # root may do anything
        with pytest.raises(PermissionError, match=f"Permission denied: '{tmp_path}/a'"):
            write(tmp_path / "a")
        assert names(tmp_path) == []


def test_check_writable_leaves_things_alone(path):
    check_writable(path)
    assert names(path.parent) == []
    path.write_text("old")
    check_writable(path)
    assert path.read_text() == "old"


def test_a_full_disk_names_the_file_and_leaves_the_old_one(path):
    path.write_text("old")
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limit[1]))  # stands for the disk
    try:
        with pytest.raises(OSError, match=r"File too large: .*a \[1\].txt"):
            write(path, "x" * 10_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_text() == "old"
    assert names(path.parent) == [path.name]


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), FileNotFoundError(2, "No such file", "other")])
def test_what_goes_wrong_elsewhere_passes_and_leaves_the_old_file(error, path):
    path.write_text("old")

    def fail():
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(type(error)) as raised:
        fail()
    assert raised.value is error
    assert path.read_text() == "old"
    assert names(path.parent) == [path.name]


def test_what_killed_processes_left_is_removed_a_day_later(path):
    program = """
        import os, signal, sys
        with replacing(sys.argv[1]) as temporary:
            temporary.write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)
    """
    subprocess.run([sys.executable, "-c", ALONE + textwrap.dedent(program), os.fspath(path)])
    (left,) = path.parent.iterdir()
    others = [".a [1].txt.1a2b3c4d.tmp", ".a 1.txt.1a2b3c4d.tmp"]  # of another process now, of another file
    for name in others:
        (path.parent / name).write_text("half")
    for name in (left, path.parent / others[1]):
        os.utime(name, (time.time() - 25 * 3600,) * 2)
    write(path)
    assert names(path.parent) == sorted([*others, path.name])


def test_of_several_writers_one_wins_whole(path):
    texts = [f"{i}" * 50_000 for i in range(8)]
    threads = [threading.Thread(target=write, args=(path, text)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text() in texts
    assert names(path.parent) == [path.name]
