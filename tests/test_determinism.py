"""The same seed gives the same bytes; what may differ by rounding does not change the best labels."""

import multiprocessing

import numpy as np
import pytest
from reference import paper

from labelsense import CompressedLabelClassifier, HadamardCompressor, KernelRidgeLearner
from labelsense.data import make_tagged_documents
from labelsense.regress import kernel_ridge

SPAWN = multiprocessing.get_context("spawn")
ROUNDING = 1e-3  # a score may change by so much, where sums are added in another order

X, Y = make_tagged_documents(200, 150, 30, random_state=0)
TEXTS = [" ".join(f"word{j}" for j in row.indices) for row in (X[[i]] for i in range(len(Y.indptr) - 1))]
NAMES = [[f"label {j}" for j in Y[[i]].indices] for i in range(len(TEXTS))]
MODELS = {
    "paper": (paper(features="words", random_state=0), TEXTS, NAMES),
    "refined": (CompressedLabelClassifier(random_state=0), X, Y),
}


def train(folder, n_jobs):
    """Fit the models, and save them with their predictions, in a process that shares nothing with this one."""
    for name, (model, rows, labels) in MODELS.items():
        model.set_params(n_jobs=n_jobs).fit(rows, labels)
        top = model.predict_topk(rows)
        model.set_params(n_jobs=None).save(folder / name)
        np.savez(folder / f"{name}.npz", labels=np.array(top.labels, str), scores=top.scores)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Folders of what three processes have made of the same seed."""
    folders, processes = {}, []
    with pytest.MonkeyPatch.context() as patch:
        for name, n_jobs, seed, threads in (("one", 1, 1, 1), ("jobs", 3, 2, 1), ("threads", 1, 3, 2)):
            patch.setenv("PYTHONHASHSEED", str(seed))
            patch.setenv("OPENBLAS_NUM_THREADS", str(threads))
            folders[name] = tmp_path_factory.mktemp(name)
            processes.append(SPAWN.Process(target=train, args=(folders[name], n_jobs)))
            processes[-1].start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    return folders


@pytest.mark.xdist_group("determinism")
@pytest.mark.parametrize("name", MODELS)
class TestProcesses:
    def test_the_same_bytes_whatever_hash_seed_and_n_jobs(self, name, trained):
        one, other = (trained[process] / name for process in ("one", "jobs"))
        assert one.read_bytes() == other.read_bytes()
        predictions = [dict(np.load(path.with_name(f"{name}.npz"))) for path in (one, other)]
        for key in ("labels", "scores"):
            np.testing.assert_array_equal(*(found[key] for found in predictions))

    def test_threads_of_the_linear_algebra_do_not_change_the_best_labels(self, name, trained):
        one, other = (np.load(trained[process] / f"{name}.npz") for process in ("one", "threads"))
        check_best_labels(one["labels"], one["scores"], other["labels"], other["scores"])


def check_best_labels(labels, scores, other_labels, other_scores, atol=ROUNDING):
    """Assert that labels are the same wherever their scores are further apart than rounding is."""
    np.testing.assert_allclose(scores, other_scores, atol=atol)
    gaps = -np.diff(scores, axis=1) > 2 * atol
    sure = np.hstack([gaps, gaps[:, -1:]]) & np.hstack([gaps[:, :1], gaps])
    assert sure.mean() > 0.2
    np.testing.assert_array_equal(labels[sure], other_labels[sure])


def test_free_memory_does_not_change_the_best_labels(monkeypatch):
    """With little, kernel ridge regression goes without the kernel matrix."""
    n, m, models = len(TEXTS), 24, []
    for memory in (1e9, 4.0 * n * (kernel_ridge.LANDMARKS + 6 * m) + 1):
        monkeypatch.setattr(kernel_ridge, "available_memory", lambda memory=memory: memory)
        models.append(paper(HadamardCompressor(m), KernelRidgeLearner(alpha=0.1), random_state=0).fit(X, Y))
    assert not np.array_equal(*(model.learner_.dual_coef_ for model in models))  # by other sums
    one, other = (model.predict_topk(X) for model in models)
    check_best_labels(one.labels, one.scores, other.labels, other.scores, atol=0.02)  # it stops when it is near
