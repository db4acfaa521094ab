"""Long steps go on where they stopped, from files that are whole."""

import numpy as np
import pytest

from labelsense import _checkpoint
from labelsense._checkpoint import checkpoints_in, next_folder, next_step, read_checked, write_checked
from labelsense.errors import FormatError
from labelsense.regress.conjugate_gradients import add_ridge, conjugate_gradients

rng = np.random.default_rng(0)
ARRAYS = {"a": np.arange(6.0).reshape(2, 3), "b": np.array([1], np.int64), "none": np.empty(0, np.float32)}


class TestFiles:
    def test_come_back_as_they_were(self, tmp_path):
        write_checked(tmp_path / "f", ARRAYS, {"name": "x"})
        arrays, about = read_checked(tmp_path / "f")
        assert about["name"] == "x"
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(arrays[name], array)

    @pytest.mark.parametrize("place", [0, 3, 40, -1, -20])
    def test_damage_is_found(self, place, tmp_path):
        write_checked(tmp_path / "f", ARRAYS)
        content = bytearray((tmp_path / "f").read_bytes())
        content[place] ^= 1
        (tmp_path / "f").write_bytes(content)
        with pytest.raises(FormatError, match="is damaged .* Remove the folder"):
            read_checked(tmp_path / "f")


class TestSteps:
    def test_are_known_by_their_order(self, tmp_path, monkeypatch):
        monkeypatch.setattr(_checkpoint, "EVERY", 0)
        monkeypatch.setattr(_checkpoint, "SHARE", 0)
        with checkpoints_in(tmp_path):
            for number in range(3):
                step = next_step("sum")
                assert step.load() is None
                step.save(lambda number=number: {"x": np.array([number])})
        damaged = next(tmp_path.glob("*0002*"))
        damaged.write_bytes(damaged.read_bytes()[:-1])
        with checkpoints_in(tmp_path):
            assert next_step("other").load() is None
            assert [int(next_step("sum").load()["x"][0]) for _ in range(2)] == [0, 1]
            assert next_step("sum").load() is None  # damaged
            assert next_step("sum").load() is None  # not there

    def test_are_kept_once_in_a_while_and_when_done(self, tmp_path):
        with checkpoints_in(tmp_path):
            step = next_step("sum")
            step.save(lambda: {"x": np.zeros(1)})
            assert step.load() is None
            step.finish({"x": np.ones(1)})
            assert step.load()["x"] == 1

    def test_nothing_is_kept_by_default(self):
        step = next_step("sum")
        step.finish({"x": np.zeros(1)})
        assert step.load() is None
        with pytest.raises(RuntimeError, match="no folder for temporary files"):
            next_folder("chunks")


@pytest.mark.parametrize("kind", ["diagonal", "callable"])
def test_conjugate_gradients_go_on_exactly(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(_checkpoint, "EVERY", 0)
    monkeypatch.setattr(_checkpoint, "SHARE", 0)
    X, right = rng.normal(size=(80, 30)).astype(np.float32), rng.normal(size=(30, 4)).astype(np.float32)
    inverse = (1 / ((X**2).sum(axis=0) + 0.1)).astype(np.float32)
    products = 0

    def solve(stop_after=10**9):
        nonlocal products

        def apply(P):
            nonlocal products
            products += 1
            if products > stop_after:
                raise KeyboardInterrupt
            return add_ridge(np.ascontiguousarray(X.T @ (X @ P)), P, 0.1)

        products = 0
        precondition = inverse if kind == "diagonal" else lambda R: inverse[:, None] * R
        return conjugate_gradients(apply, right, precondition, 1e-6, 300)

    W, steps = solve()
    all_products = products
    with checkpoints_in(tmp_path), pytest.raises(KeyboardInterrupt):
        solve(stop_after=5)
    with checkpoints_in(tmp_path):
        again, steps_again = solve()
    assert products == all_products - 5
    assert steps_again == steps
    np.testing.assert_array_equal(again, W)
    with checkpoints_in(tmp_path):
        np.testing.assert_array_equal(solve()[0], W)
    assert products == 0
