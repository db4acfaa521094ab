"""Work on rows by several threads."""

import threading

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from labelsense._blocks import map_rows


def algebra_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


class TestMapRows:
    def test_blocks_come_back_in_order(self):
        assert map_rows(lambda rows: (rows.start, rows.stop), 7, 3, 2) == [(0, 3), (3, 6), (6, 7)]

    def test_linear_algebra_is_on_one_thread_while_several_of_ours_work(self):
        with threadpool_limits(2, "blas"):
            assert map_rows(lambda rows: algebra_threads(), 4, 1, 2) == [{1}] * 4
            assert algebra_threads() == {2}
            assert map_rows(lambda rows: algebra_threads(), 4, 1, 1) == [{2}] * 4

    def test_its_threads_come_back_after_an_error(self):
        with threadpool_limits(2, "blas"):
            with pytest.raises(ZeroDivisionError):
                map_rows(lambda rows: 1 // rows.start, 4, 1, 2)
            assert algebra_threads() == {2}

    def test_a_call_on_another_thread_that_ends_first_changes_nothing(self):
        def call_elsewhere(rows):
            other = threading.Thread(target=lambda: map_rows(lambda rows: None, 3, 1, 3))
            other.start()
            other.join()
            return algebra_threads()

        with threadpool_limits(2, "blas"):
            assert map_rows(call_elsewhere, 2, 1, 2) == [{1}] * 2
            assert algebra_threads() == {2}
