// One linear classifier per label by dual coordinate descent: min |w|^2 / 2 + C sum_i max(0, 1 - y_i w'x_i)^2.
//
// Hsieh, Chang, Lin, Keerthi, Sundararajan (2008), A dual coordinate descent method for large-scale linear SVM, with
// their shrinking. Each label is learned from rows of its own; the order in which rows are visited depends on the label's
// number only, so results do not depend on how labels are shared out.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "sparse.hpp"

namespace labelsense {

// The rows of each label, label by label, and whether each of them has it.
struct LabelRows {
    const int64_t* indptr;
    const int32_t* rows;
    const uint8_t* has;
};

// Weights of the labels that were trained, label by label: those that are not small beside the largest one of the label.
struct Weights {
    std::vector<int64_t> indptr{0};
    std::vector<int32_t> indices;
    std::vector<float> data;
    std::vector<float> bias;
    int64_t not_converged = 0;
};

// A generator of its own, since those of the standard library differ between platforms where ranges are concerned.
class Shuffler {
  public:
    explicit Shuffler(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du) {}

    int64_t below(int64_t n) {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return static_cast<int64_t>(state_ % static_cast<uint64_t>(n));
    }

  private:
    uint64_t state_;
};

class Ranker {
  public:
    Ranker(const SparseRows& X, const double* squares, int64_t p, double C, double tol, int64_t max_rounds, float smallest)
        : X_(X), squares_(squares), diagonal_(0.5 / C), tol_(tol), max_rounds_(max_rounds), smallest_(smallest), w_(p) {}

    // Learns the labels [begin, end); `out` gets their weights.
    void train(const LabelRows& labels, int64_t begin, int64_t end, Weights& out) {
        for (int64_t j = begin; j < end; ++j) {
            const int64_t first = labels.indptr[j], n = labels.indptr[j + 1] - first;
            if (!solve(labels.rows + first, labels.has + first, n, static_cast<uint64_t>(j))) ++out.not_converged;
            keep(labels.rows + first, n, out);
        }
    }

  private:
    double dot(int64_t i) const {
        double sum = bias_;
        for (int64_t e = X_.indptr[i]; e < X_.indptr[i + 1]; ++e) sum += w_[X_.indices[e]] * X_.data[e];
        return sum;
    }

    void add(int64_t i, double step) {
        for (int64_t e = X_.indptr[i]; e < X_.indptr[i + 1]; ++e) w_[X_.indices[e]] += step * X_.data[e];
        bias_ += step;
    }

    // True if the largest violation of the optimality conditions fell to the tolerance.
    bool solve(const int32_t* rows, const uint8_t* has, int64_t n, uint64_t seed) {
        constexpr double INF = std::numeric_limits<double>::infinity();
        alpha_.assign(n, 0.0);
        order_.resize(n);
        for (int64_t i = 0; i < n; ++i) order_[i] = static_cast<int32_t>(i);
        bias_ = 0;
        Shuffler random(seed);
        double limit = INF;  // gradients beyond it will not move: their rows are left out until the others have settled
        int64_t active = n;
        for (int64_t round = 0; round < max_rounds_; ++round) {
            double highest = -INF, lowest = INF;
            for (int64_t i = 0; i < active; ++i) std::swap(order_[i], order_[i + random.below(active - i)]);
            for (int64_t place = 0; place < active; ++place) {
                const int32_t i = order_[place];
                const double y = has[i] ? 1.0 : -1.0;
                const double gradient = y * dot(rows[i]) - 1 + diagonal_ * alpha_[i];
                if (alpha_[i] == 0 && gradient > limit) {
                    std::swap(order_[place--], order_[--active]);
                    continue;
                }
                const double violation = alpha_[i] == 0 ? std::min(gradient, 0.0) : gradient;
                highest = std::max(highest, violation);
                lowest = std::min(lowest, violation);
                if (std::fabs(violation) < 1e-12) continue;
                const double next = std::max(alpha_[i] - gradient / (squares_[rows[i]] + 1 + diagonal_), 0.0);
                add(rows[i], y * (next - alpha_[i]));
                alpha_[i] = next;
            }
            if (highest - lowest <= tol_) {
                if (active == n) return true;
                active = n;  // once more over all rows
                limit = INF;
            } else {
                limit = highest > 0 ? highest : INF;
            }
        }
        return n == 0;
    }

    // Moves the weights to `out` and leaves zeros.
    void keep(const int32_t* rows, int64_t n, Weights& out) {
        const size_t start = out.indices.size();
        double largest = 0;
        for (int64_t i = 0; i < n; ++i) {
            if (alpha_[i] == 0) continue;  // it has added nothing
            for (int64_t e = X_.indptr[rows[i]]; e < X_.indptr[rows[i] + 1]; ++e)
                largest = std::max(largest, std::fabs(w_[X_.indices[e]]));
        }
        const double least = smallest_ * largest;
        for (int64_t i = 0; i < n; ++i) {
            if (alpha_[i] == 0) continue;
            for (int64_t e = X_.indptr[rows[i]]; e < X_.indptr[rows[i] + 1]; ++e) {
                double& w = w_[X_.indices[e]];
                if (std::fabs(w) >= least && w != 0) out.indices.push_back(X_.indices[e]);
                if (std::fabs(w) >= least && w != 0) out.data.push_back(static_cast<float>(w));
                w = 0;
            }
        }
        sort_from(start, out);
        out.indptr.push_back(static_cast<int64_t>(out.indices.size()));
        out.bias.push_back(static_cast<float>(bias_));
    }

    void sort_from(size_t start, Weights& out) {
        pairs_.clear();
        for (size_t e = start; e < out.indices.size(); ++e) pairs_.emplace_back(out.indices[e], out.data[e]);
        std::sort(pairs_.begin(), pairs_.end());
        for (size_t e = 0; e < pairs_.size(); ++e) {
            out.indices[start + e] = pairs_[e].first;
            out.data[start + e] = pairs_[e].second;
        }
    }

    SparseRows X_;
    const double* squares_;
    double diagonal_, tol_;
    int64_t max_rounds_;
    float smallest_;
    std::vector<double> w_, alpha_;
    std::vector<int32_t> order_;
    std::vector<std::pair<int32_t, float>> pairs_;
    double bias_ = 0;
};

}  // namespace labelsense
