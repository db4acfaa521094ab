"""The paper's experiments: the shared fit, the rules of measurement, the lines, the claims, the page."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

from labelsense import (
    ECOCClassifier,
    GaussianCompressor,
    HadamardCompressor,
    LassoDecoder,
    RidgeLearner,
    SECOCClassifier,
)
from labelsense.cli import app
from labelsense.data import make_tagged_documents
from labelsense.experiments import reproduce, write_report
from labelsense.experiments.claims import CLAIMS
from labelsense.experiments.lines import append_line, read_lines
from labelsense.experiments.problems import Halves, fit_least_squares, frequent_columns, load_halves, measure
from labelsense.experiments.results import Results, read_results
from labelsense.experiments.runs import average, precisions, refit, run_compressed, run_one_against_all
from labelsense.experiments.settings import (
    COMPRESSORS,
    DECODERS,
    KS,
    MEASUREMENTS,
    PROBLEMS,
    REFITTED,
    SIZES,
    Problem,
    Run,
    compressed_runs,
    one_against_all,
    quickly,
)
from labelsense.experiments.sparsity import exponent, relative_tails

pytestmark = pytest.mark.xdist_group("experiments")  # the quick look is run once

TEXT = Problem("delicious", "text", 0.01)


def without_time(folder):
    return {run: {**line, "seconds": 0} for run, line in read_lines(folder).items()}


@pytest.fixture(scope="module")
def halves():
    X, Y = make_tagged_documents(400, 60, 150, random_state=0)
    return Halves(X[:200], Y[:200], X[200:], Y[200:])


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """A folder with the quick look at the bundled data, and what was said meanwhile."""
    folder = tmp_path_factory.mktemp("quick")
    said = []
    page = reproduce(folder, datasets=["debtags"], quick=True, progress=lambda *step: said.append(step))
    return folder, page.read_text(), said


@pytest.fixture
def no_figures(monkeypatch):
    """Leave out the drawing, which takes most of the time of a report."""
    monkeypatch.setattr("labelsense.experiments.report.draw_all", lambda every, folder: {})


class TestMeasuring:
    @pytest.mark.parametrize("compressor", [HadamardCompressor, GaussianCompressor])
    @pytest.mark.parametrize("alpha", [0.0, 0.01])
    def test_one_fit_serves_every_matrix(self, halves, compressor, alpha):
        A = compressor(40, random_state=1).fit(150).operator_
        direct = RidgeLearner(alpha, fit_intercept=False).fit(halves.X_train, A.compress(halves.Y_train))
        H = measure(A, fit_least_squares(halves, alpha).coef_, halves.X_test)
        np.testing.assert_allclose(H, direct.predict(halves.X_test), atol=2e-3)

    @pytest.mark.parametrize("decoder", DECODERS)
    def test_precision_follows_the_papers_rule(self, decoder):
        rng = np.random.default_rng(0)
        Y = sp.csr_array((rng.uniform(size=(20, 50)) < 0.2).astype(np.float32))
        path = {size: np.zeros((20, 50)) for size in SIZES}
        for size, scores in path.items():
            for row in scores:
                row[rng.choice(50, size, replace=False)] = rng.normal(size=size)
        got = precisions(decoder, Y, {size: sp.csr_array(scores) for size, scores in path.items()})
        truth = Y.toarray()
        for k in KS:
            source = k if decoder == "correlation" else 10 if k < 6 else 2 * k
            hits = [sum(truth[i, j] for j in np.argsort(-abs(path[source][i]))[:k]) / k for i in range(20)]
            assert got[k - 1] == pytest.approx(np.mean(hits))

    def test_refitting_is_least_squares_on_the_support(self):
        operator = HadamardCompressor(30, random_state=0).fit(60).operator_
        H = np.random.default_rng(0).normal(size=(7, 30)).astype(np.float32)
        found = LassoDecoder().path(operator.kernel(), H, [4])[0]
        found = sp.vstack([found[:2], 0 * found[[2]], found[3:]], format="csr")  # a row without labels
        found.eliminate_zeros()
        got = refit(operator, H, found)
        for i in range(7):
            J = found[[i]].indices
            np.testing.assert_array_equal(got[[i]].indices, J)
            if len(J):
                expected = np.linalg.lstsq(operator.columns(J), H[i], rcond=None)[0]
                np.testing.assert_allclose(got[[i]].data, expected, atol=1e-5)

    def test_one_against_all_is_what_a_dense_array_gives(self, halves):
        B = fit_least_squares(halves, 0.01).coef_
        line = run_one_against_all(halves, B)
        P, Y = halves.X_test @ B, halves.Y_test.toarray()
        assert line["dense_error"] == pytest.approx(((P - Y) ** 2).sum() / 200, rel=1e-5)
        assert line["error_of_nothing"] == pytest.approx(Y.sum() / 200)
        kept = np.where(-np.sort(-P, axis=1)[:, [2]] <= P, P, 0)
        assert line["errors"][2] == pytest.approx(((kept - Y) ** 2).sum() / 200, rel=1e-5)
        assert line["precisions"][2] == pytest.approx((Y * (kept != 0)).sum() / 600)
        frequency = Y.sum(axis=0) + halves.Y_train.sum(axis=0)
        assert line["label_frequencies"] == [frequency.min(), frequency.max()]

    def test_all_rows_of_the_hadamard_matrix_are_one_against_all(self, halves):
        Y = [part[:, :128] for part in (halves.Y_train, halves.Y_test)]
        full = Halves(halves.X_train, Y[0], halves.X_test, Y[1])
        B = fit_least_squares(full, 0.01).coef_
        line = run_compressed(Run(TEXT, "hadamard", 128, "correlation", 0), full, B)
        assert line["coherence"] == 0
        P, truth = halves.X_test @ B, Y[1].toarray()
        for k in KS:
            kept = np.where(abs(P) >= -np.sort(-abs(P), axis=1)[:, [k - 1]], P, 0)
            assert line["errors"][k - 1] == pytest.approx(((kept - truth) ** 2).sum() / 200, rel=1e-4)

    @pytest.mark.parametrize("model", [SECOCClassifier, ECOCClassifier])
    def test_averages_are_the_output_codes_of_the_library(self, halves, model):
        learner = RidgeLearner(0.01, fit_intercept=False)
        code = model(learner, n_subproblems=64, n_nonzero=10, random_state=0).fit(halves.X_train, halves.Y_train)
        ((operator, _),) = code.parts_
        top = average(operator, measure(operator, fit_least_squares(halves, 0.01).coef_, halves.X_test))
        expected = code.predict_topk(halves.X_test, 10)
        np.testing.assert_allclose(top.scores, expected.scores, atol=1e-3)

    def test_frequent_columns(self):
        Y = sp.csr_array([[1, 0, 1, 1], [1, 0, 0, 1], [0, 0, 0, 1]])
        assert frequent_columns(Y, 2).tolist() == [0, 3]


class TestSparsity:
    def test_tails_are_those_of_the_definition(self):
        P = np.random.default_rng(0).normal(size=(30, 12))
        clipped = -np.sort(-np.clip(P, 0, 1), axis=1)
        for k in range(1, 13):
            expected = (clipped[:, k:] ** 2).sum(axis=1) / (clipped**2).sum(axis=1)
            np.testing.assert_allclose(relative_tails(P)[:, k - 1], expected, atol=1e-6)

    def test_a_row_of_zeros_is_left_out(self):
        assert relative_tails([[0.0, -1.0], [1.0, 1.0]]).tolist() == [[0.5, 0.0]]

    @pytest.mark.parametrize("r", [0.3, 0.55, 2])
    def test_the_exponent_of_a_power_law(self, r):
        assert exponent(7 * np.arange(1.0, 100) ** -r, 5, 20) == pytest.approx(r)


class TestRuns:
    def test_quick_look_runs_everything_once(self, quick):
        folder, _, said = quick
        problem = quickly(PROBLEMS["debtags"])
        expected = {one_against_all(problem), *compressed_runs(problem, 571, [0], quick=True)}
        assert set(read_lines(folder)) == expected
        assert (folder / "report.html").is_file()
        assert re.search(r"debtags, 800 rows: hadamard, m = 100, omp; 29 runs to go", said[1][0])
        assert [done for _, done in said] == sorted(done for _, done in said)
        assert said[-1][0].endswith("; 1 runs to go")

    def test_measurements_not_fewer_than_labels_are_no_runs(self):
        assert {run.n_measurements for run in compressed_runs(TEXT, 300, [0])} == {50, 100, 200}

    def test_what_is_there_is_not_run_again(self, quick, monkeypatch, no_figures):
        folder, _, _ = quick
        monkeypatch.setattr("labelsense.experiments.paper.load_halves", None)  # not even loaded
        before = (folder / "runs.jsonl").read_bytes()
        reproduce(folder, datasets=["debtags"], quick=True)
        assert (folder / "runs.jsonl").read_bytes() == before

    def test_goes_on_after_an_interruption(self, quick, tmp_path, no_figures):
        folder, _, _ = quick
        lines = (folder / "runs.jsonl").read_text().splitlines(keepends=True)
        (tmp_path / "runs.jsonl").write_text("".join(lines[:-2]) + lines[-2][:40])  # cut off in a line
        said = []
        reproduce(tmp_path, datasets=["debtags"], quick=True, progress=lambda *step: said.append(step))
        assert len(said) == 3
        assert without_time(tmp_path) == without_time(folder)

    def test_ctrl_c_keeps_what_was_done(self, tmp_path):
        def interrupt(step, done):
            if "foba" in step:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            reproduce(tmp_path, datasets=["debtags"], quick=True, progress=interrupt)
        assert [run.decoder for run in read_lines(tmp_path)] == ["one_against_all", "omp"]

    def test_other_settings_are_other_runs(self, tmp_path):
        for alpha in (0.01, 0.1):
            append_line(
                tmp_path, Run(Problem("delicious", "text", alpha), "hadamard", 100, "omp", 0), {"errors": [alpha]}
            )
        assert [line["errors"] for line in read_lines(tmp_path).values()] == [[0.01], [0.1]]

    def test_a_damaged_line_is_named(self, tmp_path):
        (tmp_path / "runs.jsonl").write_text("{}\n")
        with pytest.raises(ValueError, match="runs.jsonl, line 1 is not a result of this version"):
            read_lines(tmp_path)

    def test_a_data_set_that_is_not_here_is_left_out(self, quick, tmp_path, monkeypatch, no_figures):
        def missing(problem, folder, esp):
            if problem.dataset != "debtags":
                raise FileNotFoundError(f"{problem.dataset} is not on this machine")
            raise AssertionError

        (tmp_path / "runs.jsonl").write_bytes((quick[0] / "runs.jsonl").read_bytes())
        monkeypatch.setattr("labelsense.experiments.paper.load_halves", missing)
        page = reproduce(tmp_path, quick=True).read_text()
        assert "Left out: <b>delicious</b>. delicious is not on this machine" in page
        assert "debtags, 800 rows" in page

    def test_refusals(self, tmp_path):
        with pytest.raises(ValueError, match="datasets must be among delicious, .*. Got 'mnist'"):
            reproduce(tmp_path, datasets=["mnist"])
        with pytest.raises(ValueError, match="seeds must name at least one seed"):
            reproduce(tmp_path, seeds=[])
        with pytest.raises(ValueError, match="a seed must be at least 0. Got -1"):
            reproduce(tmp_path, seeds=[-1])
        with pytest.raises(ValueError, match="There are no runs in .*labelsense reproduce"):
            write_report(tmp_path)


class TestImages:
    def test_a_folder_laid_out_like_the_esp_games(self, tmp_path):
        from PIL import Image

        rng = np.random.default_rng(0)
        for part in ("images", "LabelDesc"):
            (tmp_path / "esp" / part).mkdir(parents=True)
        for i in range(240):
            pixels = rng.integers(256, size=(40, 40), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "esp" / "images" / f"{i:03}.jpg", quality=95)
            tags = "\n".join(f"tag {j}" for j in rng.choice(120, 3, replace=False))
            (tmp_path / "esp" / "LabelDesc" / f"{i:03}.jpg.desc").write_text(tags)
        problem = PROBLEMS["esp"]
        halves = load_halves(problem, tmp_path, tmp_path / "esp")
        assert halves.X_train.shape == halves.X_test.shape == (120, 1024)
        assert (halves.X_train.sum(axis=1) == 49).all()  # 7 x 7 patches in each image
        assert halves.Y_train.shape[1] == 120
        again = load_halves(problem, tmp_path, "gone")  # kept, because it takes minutes
        assert all((a != b).nnz == 0 for a, b in zip(halves, again, strict=True))
        line = run_one_against_all(halves, fit_least_squares(halves, problem.alpha).coef_)
        append_line(tmp_path, one_against_all(problem), {**line, "alpha": 0.0})
        assert "esp" in write_report(tmp_path).read_text()

    def test_the_esp_data_need_a_folder(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="no longer at their address. Name a folder"):
            load_halves(PROBLEMS["esp"], tmp_path)


def made_up(change=None, counts=MEASUREMENTS):
    """Return results in which every claim of the paper holds, or ones changed by ``change(run, line)``."""
    k = np.arange(1, 11)
    curve = np.concatenate([np.arange(1.0, 31) ** -0.5, 30**-0.5 * np.exp(-np.arange(1, 954) / 40)])
    top = 0.6 - 0.02 * k
    lines = {
        one_against_all(TEXT): {
            "errors": (20 - 0.2 * k).tolist(), "precisions": top.tolist(), "dense_error": 17.0,
            "error_of_nothing": 20.0, "sparsity_errors": curve.tolist(), "rows": [8052, 8053],
            "features": 500, "labels": 983, "alpha": 0.01,
            "labels_per_row": 19.0, "label_frequencies": [21, 6495], "seconds": 1.0, "versions": {"numpy": "2"},
        }
    }  # fmt: skip
    for run in compressed_runs(TEXT, 983, [0, 1]):
        if run.n_measurements not in counts:
            continue
        m, greedy = run.n_measurements, run.decoder in ("omp", "foba")
        error = 20 - 0.2 * k + 60 / m
        if m == 100:
            error = 20.5 + (0.1 * k if greedy else -0.01 * k)
        if run.decoder == "correlation" and m > 100:
            error = error + 0.05 - 0.0001 * m
        worse = run.compressor == "gaussian"
        line = {
            "errors": (error + 0.1 * worse + 0.001 * run.seed).tolist(),
            "precisions": (top * (1 - 15 / m) - 0.01 * worse - 0.01 * (run.decoder == "correlation")).tolist(),
            "coherence": 3 / np.sqrt(m), "seconds": 1.0, "versions": {},
        }  # fmt: skip
        lines[run] = change(run, line) if change else line
    return Results(TEXT, lines)


def verdict(name, results):
    return next(claim for claim in CLAIMS if claim.name == name).verdict(results)


def raised(field, by, **where):
    """Return a change that adds to a field of the runs with these settings."""

    def change(run, line):
        if all(getattr(run, name) in values for name, values in where.items()):
            return {**line, field: (np.array(line[field]) + by).tolist()}
        return line

    return change


FAILURES = {
    "improves_with_m": raised("errors", 5, n_measurements=[400], decoder=["lasso"], compressor=["hadamard"]),
    "figures_show_separate_sets": raised("errors", 5, n_measurements=[200], decoder=["lasso"]),
    "nearly_one_against_all": raised("precisions", -0.2, n_measurements=[300], decoder=["omp"]),
    "overfits_at_small_m": raised("errors", -0.2 * np.arange(10), n_measurements=[100], decoder=["omp"]),
    "error_falls_with_k": raised("errors", np.arange(10), n_measurements=[400], decoder=["omp"]),
    "precision_falls_with_k": raised("precisions", np.arange(10) / 10, n_measurements=[200], decoder=["foba"]),
    "matches_baseline_in_error": raised("errors", 1, decoder=["lasso"], n_measurements=[200, 300, 400]),
    "greedy_fail_at_small_m": raised("errors", 9, decoder=["correlation"], n_measurements=[100]),
    "correlated_columns_help_error": raised("errors", 9, decoder=["cosamp"], n_measurements=[100]),
    "few_rows_correlate": raised("coherence", 1, n_measurements=[300]),
    "matches_baseline_in_precision": raised("precisions", 0.2, decoder=["correlation"], n_measurements=[300]),
    "correlated_columns_and_precision": raised("precisions", -0.1, decoder=["omp", "foba"], n_measurements=[100]),
    "gaussian_uniformly_worse": raised("errors", -1, compressor=["gaussian"], n_measurements=[200], decoder=["omp"]),
    "few_measurements_suffice": raised("precisions", -0.3),
    "robustness_matters": raised("errors", 9, decoder=["omp"], n_measurements=[400]),
}


class TestClaims:
    @pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
    def test_holds_where_it_should(self, claim):
        found = claim.verdict(made_up())
        assert found.holds is True, found.measured
        assert re.search(r"\d", found.measured)

    @pytest.mark.parametrize("name", FAILURES)
    def test_fails_where_it_should(self, name):
        assert verdict(name, made_up(FAILURES[name])).holds is False

    def test_the_claims_on_the_data(self):
        results = made_up()
        results.baseline["labels"] = 900
        results.baseline["sparsity_errors"] = (np.arange(1.0, 984) ** -1.2).tolist()
        for name in ("data_are_the_papers", "decay_around_ten", "decay_ends_super_polynomial", "less_than_sparse"):
            assert verdict(name, results).holds is False

    def test_a_failure_says_why(self):
        shrunk = raised("errors", 1, decoder=["lasso"], n_measurements=[200, 300, 400])
        assert (
            "least squares on the labels it finds is at worst -0.0"
            in verdict("matches_baseline_in_error", made_up(shrunk)).measured
        )
        rising = made_up(FAILURES["error_falls_with_k"])
        assert "own k largest predictions are best at k = 10" in verdict("error_falls_with_k", rising).measured

    def test_what_was_not_run_is_not_tested(self):
        found = verdict("nearly_one_against_all", made_up(counts=(100, 200)))
        assert found == (None, "needs runs of m = 300, 400")
        assert verdict("gaussian_uniformly_worse", made_up(counts=())).holds is None


class TestReport:
    def test_the_page_has_every_figure_and_every_claim(self, quick):
        folder, text, _ = quick
        names = {"errors-debtags-800-rows.png", "precisions-debtags-800-rows.png", "compressors.png", "sparsity.png"}
        names.add("output_codes.png")
        assert {path.name for path in folder.glob("*.png")} == names
        assert text.count("data:image/png;base64,") == len(names)
        for claim in CLAIMS:
            assert text.count(claim.text.replace(">", "&gt;").replace("'", "&#x27;")) == 2
        assert not re.search(r'(src|href)="(?!data:)', text)
        assert 'name="viewport"' in text

    def test_seeds_that_are_not_complete_are_not_counted(self):
        whole = made_up()
        lines = {run: line for run, line in whole.lines.items() if run.seed == 0 or run.n_measurements < 400}
        lines[one_against_all(TEXT)] = whole.baseline
        assert whole.seeds == [0, 1]
        assert Results(TEXT, lines).seeds == [0]

    def test_half_a_run_has_a_report(self, quick, tmp_path):
        lines = (quick[0] / "runs.jsonl").read_text().splitlines(keepends=True)
        (tmp_path / "runs.jsonl").write_text("".join(lines[:4]))
        assert "needs runs of" in write_report(tmp_path).read_text()

    def test_matplotlib_missing(self, quick, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
        with pytest.raises(ImportError, match=r'pip install "labelsense\[plots\]"'):
            write_report(quick[0])

    def test_command(self, quick, no_figures):
        answer = CliRunner().invoke(
            app, ["reproduce", "--dataset", "debtags", "--quick", "-o", str(quick[0]), "--json"]
        )
        assert answer.exit_code == 0, answer.output
        found = json.loads(answer.stdout)
        assert Path(found["page"]).is_file()
        assert len(found["claims"]) == len(CLAIMS)
        answer = CliRunner().invoke(app, ["reproduce", "--dataset", "debtags", "--quick", "-o", str(quick[0])])
        assert "debtags, 800 rows: holds" in answer.stdout

    def test_results_are_read_in_the_order_of_the_settings(self, quick):
        (results,) = read_results(quick[0])
        assert results.measurements == [100, 200]
        assert results.seeds == [0]
        assert all(results.has(100, decoder, "hadamard") for decoder in (*DECODERS, REFITTED))
        assert not results.has(100, REFITTED, COMPRESSORS[1])
