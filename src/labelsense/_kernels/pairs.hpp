// What refinement computes of (row, label) pairs: which labels of a row are candidates, and numbers about each of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
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
        top_largest(sum, d_, k_, top_);
        chosen_.assign(top_.begin(), top_.end());
        chosen_.insert(chosen_.end(), sure, sure + n_sure);
        std::sort(chosen_.begin(), chosen_.end());
        auto end = std::unique(chosen_.begin(), chosen_.end());
        std::copy(chosen_.begin(), end, labels);
        return end - chosen_.begin();
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
    std::vector<int64_t> top_;
    std::vector<int32_t> chosen_;
};

// out[e] = w_j' x_i + b_j for the candidates e of the rows [begin, end) of X.
inline void margins(const SparseRows& X, int64_t begin, int64_t end, int64_t p, const SparseRows& W, const float* bias,
                    const int64_t* indptr, const int32_t* labels, float* out) {
    std::vector<float> x(p);
    for (int64_t i = begin; i < end; ++i) {
        for (int64_t e = X.indptr[i]; e < X.indptr[i + 1]; ++e) x[X.indices[e]] = X.data[e];
        for (int64_t c = indptr[i]; c < indptr[i + 1]; ++c) {
            const int64_t j = labels[c];
            double sum = bias[j];
            for (int64_t e = W.indptr[j]; e < W.indptr[j + 1]; ++e) sum += W.data[e] * x[W.indices[e]];
            out[c] = static_cast<float>(sum);
        }
        for (int64_t e = X.indptr[i]; e < X.indptr[i + 1]; ++e) x[X.indices[e]] = 0;
    }
}

// Four columns of `out` (pairs, width), from `first` on, for a score of each candidate: the score, what it is below the
// best of the row, its rank there (equal scores share the better one), and the best.
inline void standing(const int64_t* indptr, int64_t begin, int64_t end, const float* scores, int64_t width, int64_t first,
                     float* out) {
    std::vector<float> sorted;
    for (int64_t i = begin; i < end; ++i) {
        const float *start = scores + indptr[i], *stop = scores + indptr[i + 1];
        sorted.assign(start, stop);
        std::sort(sorted.begin(), sorted.end(), std::greater<float>());
        for (int64_t c = indptr[i]; c < indptr[i + 1]; ++c) {
            float* to = out + c * width + first;
            auto place = std::lower_bound(sorted.begin(), sorted.end(), scores[c], std::greater<float>());
            to[0] = scores[c];
            to[1] = scores[c] - sorted.front();
            to[2] = static_cast<float>(place - sorted.begin());
            to[3] = sorted.front();
        }
    }
}

// Trees over features (n, width): where not a leaf, to the left child if the feature is at most the threshold.
struct Trees {
    const int64_t* roots;
    int64_t n_trees;
    const int32_t* feature;  // -1 in a leaf
    const double* value;     // the threshold, or what a leaf adds
    const int32_t* left;     // the right child follows at left + 1 of the nodes
};

inline void add_trees(const Trees& trees, const float* features, int64_t n, int64_t width, double* out) {
    for (int64_t i = 0; i < n; ++i) {
        const float* x = features + i * width;
        double sum = 0;
        for (int64_t t = 0; t < trees.n_trees; ++t) {
            int64_t node = trees.roots[t];
            while (trees.feature[node] >= 0) node = trees.left[node] + !(x[trees.feature[node]] <= trees.value[node]);
            sum += trees.value[node];
        }
        out[i] += sum;
    }
}

}  // namespace labelsense
