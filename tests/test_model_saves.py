"""A model file is saved whole or not at all, whatever happens in between."""

import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading

import pytest
import reference
from saved import TEXTS, X, Y, same
from saved import good as good
from stored import path as path

from labelsense import load_model, model_file


def test_a_save_that_fails_leaves_the_old_file(good, monkeypatch):
    before = good.read_bytes()

    def fail(temporary, arrays, about):
        temporary.write_bytes(b"half a mod")
        raise OSError("disk full")

    monkeypatch.setattr(model_file, "write_tensors", fail)
    with pytest.raises(OSError, match="disk full"):
        load_model(good).save(good)
    assert good.read_bytes() == before
    assert [file.name for file in good.parent.iterdir()] == ["tags.model"]


def test_a_full_disk_is_an_os_error_that_names_the_file(good):
    before = good.read_bytes()
    model = load_model(good)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limit[1]))  # stands for the disk
    try:
        with pytest.raises(OSError, match=r"\[Errno 27\] File too large: '.*/tags.model'"):
            model.save(good)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, handler)
    assert good.read_bytes() == before
    assert [file.name for file in good.parent.iterdir()] == ["tags.model"]


@pytest.mark.parametrize("place", ["", "missing/tags.model"])
def test_places_where_no_model_can_be_are_named(place, tmp_path):
    model = reference.paper(random_state=0).fit(X, Y)
    with pytest.raises(OSError, match=os.fspath(tmp_path / place)):
        model.save(tmp_path / place)


def test_two_that_save_at_the_same_time_leave_one_of_the_two(path):
    models = [reference.paper(random_state=seed).fit(X, Y) for seed in (0, 1)]
    threads = [threading.Thread(target=model.save, args=(path,)) for model in models * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    again = load_model(path)
    assert any(same(model, again, X) for model in models)
    assert [file.name for file in path.parent.iterdir()] == ["tags.model"]


def test_a_process_killed_in_the_middle_of_a_save_leaves_the_old_file(good):
    before = good.read_bytes()
    program = """
        import signal, sys
        from labelsense import load_model, model_file
        real = model_file.write_tensors
        def slowly(temporary, arrays, about):
            real(temporary, arrays, about)
            with open(temporary, "r+b") as file:
                file.truncate(1000)
            print("in the middle", flush=True)
            signal.pause()
        model_file.write_tensors = slowly
        load_model(sys.argv[1]).save(sys.argv[1])
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), os.fspath(good)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "in the middle\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert good.read_bytes() == before
    assert load_model(good).predict_topk(TEXTS[:1]).labels.shape == (1, 5)


def test_a_saved_file_can_be_replaced_while_a_mapped_model_uses_it(good):
    model = load_model(good, mmap=True)
    scores = model.predict_scores(TEXTS)
    reference.paper(random_state=1).fit(X, Y).save(good)
    assert same(model, model, TEXTS)
    assert model.predict_scores(TEXTS).data.tobytes() == scores.data.tobytes()
