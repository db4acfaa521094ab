"""Work on rows by several threads."""

import logging
import threading

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from labelsense import _progress as progress
from labelsense._blocks import map_rows, plain_algebra
from labelsense._progress import report_progress


def algebra_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


class TestMapRows:
    def test_blocks_come_back_in_order(self):
        assert map_rows(lambda rows: (rows.start, rows.stop), 7, 3, 2) == [(0, 3), (3, 6), (6, 7)]

    def test_what_is_shown_here_is_shown_by_the_threads(self, caplog, monkeypatch):
        monkeypatch.setattr(progress, "EVERY", 0)
        with caplog.at_level(logging.INFO, "labelsense"), progress.verbosity(1):
            map_rows(lambda rows: report_progress("work", rows.start / 4), 4, 1, 2)
        assert sorted(caplog.messages) == ["work: 0 %", "work: 25 %", "work: 50 %", "work: 75 %"]

    def test_work_that_nobody_waits_for_ends(self):
        begun, ended = threading.Event(), threading.Event()

        def work(rows):
            if rows.start == 0:
                begun.wait(10)
                raise ZeroDivisionError
            begun.set()
            try:
                while True:
                    report_progress("work", 0.5)
            finally:
                ended.set()

        with pytest.raises(ZeroDivisionError):
            map_rows(work, 2, 1, 2)
        assert ended.wait(10)


class TestPlainAlgebra:
    def test_is_on_one_thread_as_long_as_one_is_inside(self):
        with threadpool_limits(2, "blas"):
            with plain_algebra:
                assert map_rows(lambda rows: algebra_threads(), 4, 1, 2) == [{1}] * 4
                with plain_algebra:
                    pass
                assert algebra_threads() == {1}
            assert algebra_threads() == {2}

    def test_comes_back_after_an_error(self):
        with threadpool_limits(2, "blas"):
            with pytest.raises(ZeroDivisionError), plain_algebra:
                map_rows(lambda rows: 1 // rows.start, 4, 1, 2)
            assert algebra_threads() == {2}

    def test_another_thread_that_leaves_first_changes_nothing(self):
        def visit():
            with plain_algebra:
                pass

        with threadpool_limits(2, "blas"):
            with plain_algebra:
                other = threading.Thread(target=visit)
                other.start()
                other.join()
                assert algebra_threads() == {1}
            assert algebra_threads() == {2}
