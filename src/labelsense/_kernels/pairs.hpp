// What refinement computes of (row, label) pairs: which labels of a row are candidates, and numbers about each of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "search.hpp"
#include "simd.hpp"
#include "sparse.hpp"

namespace labelsense {

// The k labels of a row with the largest weighted sum of standardised scores, and labels that are candidates anyway.
class Shortlist {
  public:
    Shortlist(int64_t d, int64_t k) : d_(d), k_(std::min(k, d)), sum_(make_floats(d)) {}

    // `scores` are one row of each source; `sure` are labels in ascending order. Writes ascending labels, returns how many.
    int64_t choose(const std::vector<const float*>& scores, const std::vector<double>& weights, const int32_t* sure,
                   int64_t n_sure, int32_t* labels) {
        float* sum = sum_.get();
        std::fill(sum, sum + d_, 0.0f);
        for (size_t s = 0; s < scores.size(); ++s) add(scores[s], weights[s]);
        largest_places(sum, d_, k_, top_);
        return std::set_union(top_.begin(), top_.end(), sure, sure + n_sure, labels) - labels;
    }

  private:
    void add(const float* x, double weight) {
        const auto [total, squares] = sums(x);
        const double n = static_cast<double>(d_), mean = total / n, variance = squares / n - mean * mean;
        if (!(variance > 1e-12 * squares / n) || !std::isfinite(variance)) return;  // it tells no labels apart
        const float scale = static_cast<float>(weight / std::sqrt(variance)), shift = static_cast<float>(mean);
        float* sum = sum_.get();
        for (int64_t j = 0; j < d_; ++j) sum[j] += scale * (x[j] - shift);
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

    int64_t d_, k_;
    Floats sum_;
    std::vector<int32_t> top_;
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

// out[e] = w_j' x_i + b_j for the candidates e of the rows [begin, end) of X.
inline void margins(const SparseRows& X, int64_t begin, int64_t end, int64_t p, const SparseRows& W, const float* bias,
                    const int64_t* indptr, const int32_t* labels, float* out) {
    std::vector<float> x(p);
    for (int64_t i = begin; i < end; ++i) {
        for (int64_t e = X.indptr[i]; e < X.indptr[i + 1]; ++e) x[X.indices[e]] = X.data[e];
        for (int64_t c = indptr[i]; c < indptr[i + 1]; ++c) {
            const int64_t j = labels[c];
            out[c] = static_cast<float>(bias[j] + sparse_dot(W, j, x.data()));
        }
        for (int64_t e = X.indptr[i]; e < X.indptr[i + 1]; ++e) x[X.indices[e]] = 0;
    }
}

// The same, given W by features, (p, d): cheaper where rows have few features. Sums are in another order, but in double, so
// all but one in a hundred million are equal.
inline void margins_by_feature(const SparseRows& X, int64_t begin, int64_t end, const SparseRows& W, const float* bias,
                               int64_t d, const int64_t* indptr, const int32_t* labels, float* out) {
    std::vector<double> sums(d);  // right for the candidates of the row only
    for (int64_t i = begin; i < end; ++i) {
        for (int64_t c = indptr[i]; c < indptr[i + 1]; ++c) sums[labels[c]] = bias[labels[c]];
        for (int64_t e = X.indptr[i]; e < X.indptr[i + 1]; ++e) {
            const int64_t feature = X.indices[e];
            for (int64_t w = W.indptr[feature]; w < W.indptr[feature + 1]; ++w) sums[W.indices[w]] += W.data[w] * X.data[e];
        }
        for (int64_t c = indptr[i]; c < indptr[i + 1]; ++c) out[c] = static_cast<float>(sums[labels[c]]);
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
class Trees {
  public:
    // `feature` is -1 in a leaf, `value` the threshold or what a leaf adds, and the right child follows the left one.
    // Children come after their parents.
    Trees(const int64_t* roots, int64_t n_trees, const int32_t* feature, const double* value, const int32_t* left,
          int64_t n_nodes)
        : roots_(roots, roots + n_trees), value_(value), nodes_(n_nodes), depth_(n_nodes) {
        for (int64_t i = n_nodes - 1; i >= 0; --i) {
            const bool leaf = feature[i] < 0;
            // In a leaf the answer is always no, and what comes next is itself.
            nodes_[i] = {leaf ? NAN : static_cast<float>(value[i]), leaf ? 0 : feature[i],
                         leaf ? static_cast<int32_t>(i) - 1 : left[i]};
            depth_[i] = leaf ? 0 : 1 + std::max(depth_[left[i]], depth_[left[i] + 1]);
        }
    }

    void add(const float* features, int64_t n, int64_t width, double* out) const {
        constexpr int64_t BLOCK = 256;
        double sums[BLOCK];
        for (int64_t block = 0; block < n; block += BLOCK) {
            const int64_t rows = std::min(BLOCK, n - block);
            const float* x = features + block * width;
            std::fill(sums, sums + rows, 0.0);
            for (int64_t root : roots_) {
                int64_t i = 0;
                for (; i + TOGETHER <= rows; i += TOGETHER) walk<TOGETHER>(root, x + i * width, width, sums + i);
                for (; i < rows; ++i) walk<1>(root, x + i * width, width, sums + i);
            }
            for (int64_t i = 0; i < rows; ++i) out[block + i] += sums[i];
        }
    }

  private:
    static constexpr int64_t TOGETHER = 16;
    struct Node {
        float threshold;
        int32_t feature, left;
    };

    // Several rows go down a tree at a time, each as many steps as it is deep: none waits for the step of another.
    template <int64_t ROWS>
    void walk(int64_t root, const float* x, int64_t width, double* sums) const {
        int32_t at[ROWS];
        for (int64_t i = 0; i < ROWS; ++i) at[i] = static_cast<int32_t>(root);
        for (int64_t step = depth_[root]; step > 0; --step)
            for (int64_t i = 0; i < ROWS; ++i) {
                const Node& node = nodes_[at[i]];
                at[i] = node.left + !(x[i * width + node.feature] <= node.threshold);
            }
        for (int64_t i = 0; i < ROWS; ++i) sums[i] += value_[at[i]];
    }

    std::vector<int64_t> roots_;
    const double* value_;
    std::vector<Node> nodes_;
    std::vector<int32_t> depth_;
};

}  // namespace labelsense
