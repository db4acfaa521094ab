// What refinement computes of (row, label) pairs: which labels of a row are candidates, and numbers about each of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "operators.hpp"
#include "search.hpp"
#include "simd.hpp"
#include "sparse.hpp"

namespace labelsense {

// What a source says of all labels, one row at a time, so that it is still in cache when it is looked at.
class Scores {
  public:
    explicit Scores(int64_t n_labels) : d(n_labels) {}
    virtual ~Scores() = default;

    const int64_t d;

    // How long the buffer for a row must be; what is beyond d is scratch.
    virtual int64_t width() const { return d; }
    virtual void row(int64_t i, float* out) const = 0;
};

// Scores that are there already, (n, d).
class StoredScores : public Scores {
  public:
    StoredScores(const float* scores, int64_t n_labels) : Scores(n_labels), scores_(scores) {}

    void row(int64_t i, float* out) const override { std::copy(scores_ + i * d, scores_ + (i + 1) * d, out); }

  private:
    const float* scores_;
};

// The correlations of residuals R (n, m) with the columns of rows of a Hadamard matrix, each times a weight of the column.
class HadamardScores : public Scores {
  public:
    HadamardScores(const Hadamard& op, const float* R, const float* weights)
        : Scores(op.d), op_(op), R_(R), weights_(weights) {}

    int64_t width() const override { return op_.width; }

    void row(int64_t i, float* out) const override {
        op_.correlate(R_ + i * op_.m, out);
        for (int64_t j = 0; j < d; ++j) out[j] *= weights_[j];
    }

  private:
    const Hadamard& op_;
    const float *R_, *weights_;
};

// u_i w_j x_i' s_j for rows X (n, p) and labels S by features, (p, d), both sparse. Not for several threads at a time.
class SparseScores : public Scores {
  public:
    SparseScores(const SparseRows& X, const SparseRows& S, const float* u, const float* w, int64_t n_labels)
        : Scores(n_labels), X_(X), S_(S), u_(u), w_(w), sums_(n_labels) {}

    void row(int64_t i, float* out) const override {
        std::fill(sums_.begin(), sums_.end(), 0.0);
        add_row(X_, i, S_, sums_.data());
        for (int64_t j = 0; j < d; ++j) out[j] = static_cast<float>(sums_[j]) * w_[j] * u_[i];
    }

  private:
    SparseRows X_, S_;
    const float *u_, *w_;
    mutable std::vector<double> sums_;
};

// The k labels of a row with the largest weighted sum of standardised scores, and labels that are candidates anyway.
class Shortlist {
  public:
    Shortlist(std::vector<const Scores*> sources, std::vector<double> weights, int64_t k)
        : sources_(std::move(sources)), weights_(std::move(weights)), d_(sources_.front()->d), k_(std::min(k, d_)),
          sum_(make_floats(d_)), scale_(sources_.size()) {
        for (const Scores* source : sources_) said_.push_back(make_floats(source->width()));
    }

    // `sure` are labels in ascending order, with values. Writes ascending labels, what each source says of them, and the
    // values, `stride` after each other. Returns how many labels there are.
    int64_t choose(int64_t i, const int32_t* sure, const float* sure_values, int64_t n_sure, int32_t* labels, float* values,
                   int64_t stride) {
        for (size_t s = 0; s < sources_.size(); ++s) {
            sources_[s]->row(i, said_[s].get());
            scale_[s] = scale_of(said_[s].get(), weights_[s]);
        }
        add_up();
        const std::vector<int32_t>& top = largest_.find(sum_.get(), d_, k_);
        const int64_t n = std::set_union(top.begin(), top.end(), sure, sure + n_sure, labels) - labels;
        for (const Floats& said : said_) {
            for (int64_t c = 0; c < n; ++c) values[c] = said[labels[c]];
            values += stride;
        }
        for (int64_t c = 0, next = 0; c < n; ++c)
            values[c] = next < n_sure && sure[next] == labels[c] ? sure_values[next++] : 0.0f;
        return n;
    }

    // Whether all scores so far were numbers whose squares can be summed.
    bool finite() const { return finite_; }

  private:
    // What standardised scores are over these, but for a constant; 0 where these tell no labels apart.
    float scale_of(const float* x, double weight) {
        const auto [total, squares] = sums(x);
        const double n = static_cast<double>(d_), mean = total / n, variance = squares / n - mean * mean;
        finite_ = finite_ && std::isfinite(squares);
        if (!(variance > 1e-12 * squares / n) || !std::isfinite(variance)) return 0;
        return static_cast<float>(weight / std::sqrt(variance));
    }

    // The sum and the sum of squares, in float over short stretches and in double over these.
    std::pair<double, double> sums(const float* x) const {
        constexpr int64_t STRETCH = 256;
        double total = 0, squares = 0;
        int64_t j = 0;
        for (; j + STRETCH <= d_; j += STRETCH) {
            f8 a = {}, b = {};
            for (int64_t i = 0; i < STRETCH; i += LANES) {
                const f8 value = load(x + j + i);
                a += value;
                b += value * value;
            }
            for (int lane = 0; lane < LANES; ++lane) total += a[lane], squares += b[lane];
        }
        for (; j < d_; ++j) total += x[j], squares += double{x[j]} * x[j];
        return {total, squares};
    }

    void add_up() {
        float* sum = sum_.get();
        std::fill(sum, sum + d_, 0.0f);
        for (size_t s = 0; s < said_.size(); ++s) {
            const float* x = said_[s].get();
            const float scale = scale_[s];
            if (scale != 0)
                for (int64_t j = 0; j < d_; ++j) sum[j] += scale * x[j];
        }
    }

    std::vector<const Scores*> sources_;
    std::vector<double> weights_;
    int64_t d_, k_;
    Floats sum_;
    std::vector<Floats> said_;
    std::vector<float> scale_;
    LargestPlaces largest_;
    bool finite_ = true;
};

// The k labels with the largest w_j' x_i of each row of X (n, p), given W by features, (p, d), of those that have one of the
// features of the row. Ties go to the lowest label. Writes ascending labels, and how many there are.
inline void nearest(const SparseRows& X, int64_t n, const SparseRows& W, int64_t d, int64_t k, int32_t* labels,
                    int64_t* counts) {
    std::vector<double> sums(d);
    std::vector<int64_t> met(d, -1);  // the last row that met a label
    std::vector<int32_t> found;
    for (int64_t i = 0; i < n; ++i) {
        found.clear();
        for (int64_t e = X.indptr[i]; e < X.indptr[i + 1]; ++e)
            for (int64_t w = W.indptr[X.indices[e]]; w < W.indptr[X.indices[e] + 1]; ++w) {
                const int32_t j = W.indices[w];
                if (met[j] != i) met[j] = i, sums[j] = 0, found.push_back(j);
                sums[j] += static_cast<double>(W.data[w]) * X.data[e];
            }
        const auto better = [&](int32_t a, int32_t b) { return sums[a] > sums[b] || (sums[a] == sums[b] && a < b); };
        if (static_cast<int64_t>(found.size()) > k) {
            std::nth_element(found.begin(), found.begin() + k, found.end(), better);
            found.resize(k);
        }
        std::sort(found.begin(), found.end());
        std::copy(found.begin(), found.end(), labels + i * k);
        counts[i] = static_cast<int64_t>(found.size());
    }
}

// Pairs of a row and a label, label by label: those of label j have rows[e] and are at out[places[e]], for e in
// [starts[j], starts[j + 1]).
struct LabelPairs {
    const int64_t* starts;
    const int32_t* rows;
    const int64_t* places;
};

// out = w_j' x_i + b_j for the pairs of the labels [begin, end). The weights of a label are read once for all of its rows.
inline void margins(const SparseRows& X, int64_t p, const SparseRows& W, const float* bias, const LabelPairs& pairs,
                    int64_t begin, int64_t end, float* out) {
    std::vector<float> w(p);
    for (int64_t j = begin; j < end; ++j) {
        if (pairs.starts[j] == pairs.starts[j + 1]) continue;
        for (int64_t e = W.indptr[j]; e < W.indptr[j + 1]; ++e) w[W.indices[e]] = W.data[e];
        for (int64_t e = pairs.starts[j]; e < pairs.starts[j + 1]; ++e)
            out[pairs.places[e]] = static_cast<float>(bias[j] + sparse_dot(X, pairs.rows[e], w.data()));
        for (int64_t e = W.indptr[j]; e < W.indptr[j + 1]; ++e) w[W.indices[e]] = 0;
    }
}

// Four columns of `out` (pairs, width), from `first` on, for a score of each candidate: the score, what it is below the
// best of the row, its rank there (equal scores share the better one), and the best.
inline void standing(const int64_t* indptr, int64_t begin, int64_t end, const float* scores, int64_t width, int64_t first,
                     float* out) {
    std::vector<float> padded;
    for (int64_t i = begin; i < end; ++i) {
        const int64_t k = indptr[i + 1] - indptr[i];
        const float* here = scores + indptr[i];
        padded.assign(here, here + k);
        padded.resize(round_up(k, LANES));
        const float best = largest(Itself{here}, 0, k);
        for (int64_t c = 0; c < k; c += LANES) {
            const f8 mine = load(padded.data() + c);
            i8 above = {};  // of eight scores, how many of all: to compare each with each is faster than to sort
            for (int64_t other = 0; other < k; ++other) above -= here[other] > mine;
            for (int64_t lane = 0; lane < std::min(LANES, k - c); ++lane) {
                float* to = out + (indptr[i] + c + lane) * width + first;
                to[0] = mine[lane], to[1] = mine[lane] - best, to[2] = static_cast<float>(above[lane]), to[3] = best;
            }
        }
    }
}

// Trees over features (n, width): where not a leaf, to the left child if the feature is at most the threshold.
//
// Nobody walks down a tree. Every question of it is asked of eight rows at a time, and where the answer is no, the leaves
// to the left of it are struck out; the first leaf that is left is the one where a walk would have ended.
class Trees {
  public:
    static constexpr int64_t MOST_LEAVES = 32;

    // `feature` is -1 in a leaf, `value` the threshold or what a leaf adds, and the right child follows the left one.
    Trees(const int64_t* roots, int64_t n_trees, const int32_t* feature, const double* value, const int32_t* left) {
        for (int64_t tree = 0; tree < n_trees; ++tree) {
            parts_.push_back({questions_.size(), leaves_.size()});
            collect(feature, value, left, roots[tree], 0, 0);
        }
        parts_.push_back({questions_.size(), leaves_.size()});
    }

    void add(const float* features, int64_t n, int64_t width, double* out) const {
        std::vector<float> columns(width * BLOCK);
        double sums[BLOCK];
        for (int64_t block = 0; block < n; block += BLOCK) {
            const int64_t rows = std::min(BLOCK, n - block);
            for (int64_t i = 0; i < rows; ++i)
                for (int64_t f = 0; f < width; ++f) columns[f * BLOCK + i] = features[(block + i) * width + f];
            std::fill(sums, sums + BLOCK, 0.0);
            for (size_t tree = 0; tree + 1 < parts_.size(); ++tree)
                for (int64_t i = 0; i < rows; i += 2 * LANES) ask(tree, columns.data() + i, sums + i);
            for (int64_t i = 0; i < rows; ++i) out[block + i] += sums[i];
        }
    }

  private:
    static constexpr int64_t BLOCK = 128;
    struct Question {
        float threshold;
        int32_t feature, left;  // which leaves are left if the answer is no, a bit for each
    };
    struct Part {
        size_t questions, leaves;  // where those of a tree begin
    };

    // Returns how many leaves there are below a node, when so many are to the left of it, and as many nodes wait at least.
    int64_t collect(const int32_t* feature, const double* value, const int32_t* left, int64_t node, int64_t before,
                    int64_t waiting) {
        if (before + waiting >= MOST_LEAVES) throw std::invalid_argument("a tree must have at most 32 leaves");
        if (feature[node] < 0) {
            leaves_.push_back(value[node]);
            return 1;
        }
        const size_t place = questions_.size();
        questions_.push_back({static_cast<float>(value[node]), feature[node], 0});
        const int64_t found = collect(feature, value, left, left[node], before, waiting + 1);
        questions_[place].left = static_cast<int32_t>(~(((uint32_t{1} << found) - 1) << before));
        return found + collect(feature, value, left, left[node] + 1, before + found, waiting);
    }

    // Adds what a tree says of sixteen rows.
    void ask(size_t tree, const float* columns, double* sums) const {
        i8 first = i8{} - 1, second = first;
        for (size_t q = parts_[tree].questions; q < parts_[tree + 1].questions; ++q) {
            const Question& question = questions_[q];
            const float* x = columns + question.feature * BLOCK;
            first &= (load(x) <= question.threshold) | question.left;
            second &= (load(x + LANES) <= question.threshold) | question.left;
        }
        const double* values = leaves_.data() + parts_[tree].leaves;
        first = lowest_bit(first), second = lowest_bit(second);
        for (int lane = 0; lane < LANES; ++lane) sums[lane] += values[first[lane]];
        for (int lane = 0; lane < LANES; ++lane) sums[LANES + lane] += values[second[lane]];
    }

    std::vector<Question> questions_;
    std::vector<double> leaves_;
    std::vector<Part> parts_;
};

}  // namespace labelsense
