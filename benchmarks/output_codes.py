"""How many subproblems output codes need: compressed sensing with OMP against ECOC and SECOC.

    python benchmarks/output_codes.py --plot output_codes.png

Made-up documents with 1,000 tags, ridge for every subproblem, five labels kept per row. Squared error is the mean of
|scores - labels|^2 on test rows; predicting nothing has the mean number of labels. SECOC's guarantee needs all
rows of the Hadamard matrix (the last line, which is one-against-all by another name); fewer are its averages over a
random choice of them. The cut to five labels flatters the averages: what they are off on the other labels does not
count. Figures are means over the seeds of the codes, bars their range. A minute on one core.
"""

import argparse

import numpy as np

from labelsense import CompressedLabelClassifier, ECOCClassifier, HadamardCompressor, OMPDecoder, SECOCClassifier
from labelsense.data import make_tagged_documents
from labelsense.metrics import precision_at_k, squared_error

COUNTS = [32, 64, 128, 256, 512, 1024]
KEPT = 5


def methods(m, seed):
    yield (
        "OMP",
        CompressedLabelClassifier(HadamardCompressor(m), "ridge", OMPDecoder(KEPT), refiner=None, random_state=seed),
    )
    yield "ECOC", ECOCClassifier(n_subproblems=m, n_nonzero=KEPT, random_state=seed)
    yield "SECOC", SECOCClassifier(n_subproblems=m, n_nonzero=KEPT, random_state=seed)


def measure(X, Y, X_test, Y_test, seeds):
    """Yield (name, subproblems, squared errors, P@1s), one of each for every seed."""
    for m in COUNTS:
        found = {}
        for seed in range(seeds):
            for name, model in methods(m, seed):
                scores = model.fit(X, Y).predict_scores(X_test)
                figures = squared_error(Y_test, scores), 100 * precision_at_k(Y_test, scores, 1)
                found.setdefault(name, []).append(figures)
        for name, figures in found.items():
            yield name, m, *np.transpose(figures)


def plotting():
    try:
        from matplotlib import pyplot
    except ImportError:
        raise SystemExit("--plot needs matplotlib: pip install 'labelsense[plots]'") from None
    pyplot.switch_backend("agg")
    return pyplot


def draw(plt, results, nothing, path):
    # Okabe and Ito's colours, which the colour-blind can tell apart; markers differ too.
    styles = {"OMP": ("#0072B2", "o", "-"), "ECOC": ("#D55E00", "s", "--"), "SECOC": ("#009E73", "^", ":")}
    words = {"OMP": "compressed sensing, OMP", "ECOC": "ECOC, loss-based", "SECOC": "SECOC, Hadamard averages"}
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for axis, column, title in zip(axes, (2, 3), ("squared error", "precision at 1, percent"), strict=True):
        for name, (colour, marker, line) in styles.items():
            points = [row for row in results if row[0] == name]
            values = np.array([row[column] for row in points])
            means = values.mean(axis=1)
            bars = means - values.min(axis=1), values.max(axis=1) - means
            looks = {"color": colour, "marker": marker, "linestyle": line, "linewidth": 2, "capsize": 3}
            axis.errorbar([row[1] for row in points], means, bars, label=words[name], **looks)
        axis.set_xscale("log", base=2)
        axis.set_xticks(COUNTS, [str(m) for m in COUNTS])
        axis.set_xlabel("subproblems (of 1,000 labels)")
        axis.set_ylabel(title)
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
    axes[0].axhline(nothing, color="0.4", linewidth=1, label="nothing predicted")
    axes[0].legend()
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plot", metavar="FILE", help="draw the table to this file, such as codes.png")
    parser.add_argument("--rows", type=int, default=5000, help="training rows")
    parser.add_argument("--seeds", type=int, default=3, help="codes drawn for each count")
    args = parser.parse_args()
    plt = plotting() if args.plot else None
    X, Y = make_tagged_documents(args.rows + 1000, 2000, 1000, random_state=0)
    data = X[: args.rows], Y[: args.rows], X[args.rows :], Y[args.rows :]
    nothing = squared_error(data[3], 0 * data[3])
    results = []
    print(f"{'method':<6} {'subproblems':>11} {'squared error':>14} {'P@1':>6}")
    print(f"{'none':<6} {0:>11} {nothing:>14.3f} {0:>6.1f}")
    for row in measure(*data, args.seeds):
        results.append(row)
        print(f"{row[0]:<6} {row[1]:>11} {row[2].mean():>14.3f} {row[3].mean():>6.1f}", flush=True)
    if args.plot:
        draw(plt, results, nothing, args.plot)


if __name__ == "__main__":
    main()
