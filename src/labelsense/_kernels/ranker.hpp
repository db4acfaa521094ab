// One linear classifier per label by dual coordinate descent: min |w|^2 / 2 + C sum_i max(0, 1 - y_i w'x_i)^2.
//
// Hsieh, Chang, Lin, Keerthi, Sundararajan (2008), A dual coordinate descent method for large-scale linear SVM, with
// their shrinking. Each label is learned from rows of its own; the order in which rows are visited depends on the label's
// number only, so results do not depend on how labels are shared out.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
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
        : X_(X), squares_(squares), diagonal_(0.5 / C), tol_(tol), max_rounds_(max_rounds), smallest_(smallest), w_(p), listed_(p) {}

    // Learns the labels [begin, end); `all` gets their weights. Rows from `n_first` on come later: `first` gets the weights
    // that were learned without them, if there are any.
    void train(const LabelRows& labels, int64_t begin, int64_t end, int64_t n_first, Weights* first, Weights& all) {
        for (int64_t j = begin; j < end; ++j) {
            const int64_t start = labels.indptr[j], n = labels.indptr[j + 1] - start;
            const int32_t* rows = labels.rows + start;
            const uint8_t* has = labels.has + start;
            const int64_t sooner = std::lower_bound(rows, rows + n, n_first) - rows;
            alpha_.assign(n, 0.0);
            bias_ = 0;
            Shuffler random(static_cast<uint64_t>(j));
            bool settled = solve(rows, has, sooner, random);
            if (first) keep(rows, sooner, *first);
            if (sooner < n) settled = solve(rows, has, n, random);
            all.not_converged += !settled;
            keep(rows, n, all);
            clear(rows, n);
        }
    }

  private:
    double dot(int64_t i) const { return bias_ + sparse_dot(X_, i, w_.data()); }

    void add(int64_t i, double step) {
        const float scale = static_cast<float>(step);
        for (int64_t e = X_.indptr[i]; e < X_.indptr[i + 1]; ++e) w_[X_.indices[e]] += scale * X_.data[e];
        bias_ += step;
    }

    // Goes on from where alpha, weights and bias are, with the first n rows. True if the largest violation of the optimality
    // conditions fell to the tolerance.
    bool solve(const int32_t* rows, const uint8_t* has, int64_t n, Shuffler& random) {
        constexpr double INF = std::numeric_limits<double>::infinity();
        order_.resize(n);
        for (int64_t i = 0; i < n; ++i) order_[i] = static_cast<int32_t>(i);
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

    // Copies the weights that are not small to `out`.
    void keep(const int32_t* rows, int64_t n, Weights& out) {
        features_.clear();
        double largest = 0;
        for (int64_t i = 0; i < n; ++i) {
            if (alpha_[i] == 0) continue;  // it has added nothing
            for (int64_t e = X_.indptr[rows[i]]; e < X_.indptr[rows[i] + 1]; ++e) {
                const int32_t f = X_.indices[e];
                if (listed_[f]) continue;
                listed_[f] = true;
                features_.push_back(f);
                largest = std::max(largest, std::fabs(double{w_[f]}));
            }
        }
        const double least = smallest_ * largest;
        sort_features();
        for (int32_t f : features_) {
            listed_[f] = false;
            if (std::fabs(w_[f]) < least || w_[f] == 0) continue;
            out.indices.push_back(f);
            out.data.push_back(static_cast<float>(w_[f]));
        }
        out.indptr.push_back(static_cast<int64_t>(out.indices.size()));
        out.bias.push_back(static_cast<float>(bias_));
    }

    // Puts the features that are listed in order. Where they are many, to look at all is faster than to sort.
    void sort_features() {
        constexpr size_t MANY = 16;
        if (features_.size() * MANY < listed_.size()) return std::sort(features_.begin(), features_.end());
        features_.clear();
        for (size_t f = 0; f < listed_.size(); ++f)
            if (listed_[f]) features_.push_back(static_cast<int32_t>(f));
    }

    void clear(const int32_t* rows, int64_t n) {
        for (int64_t i = 0; i < n; ++i)
            for (int64_t e = X_.indptr[rows[i]]; e < X_.indptr[rows[i] + 1]; ++e) w_[X_.indices[e]] = 0;
    }

    SparseRows X_;
    const double* squares_;
    double diagonal_, tol_;
    int64_t max_rounds_;
    float smallest_;
    std::vector<float> w_;  // not double: those of two threads on one core stay in its nearest cache
    std::vector<double> alpha_;
    std::vector<int32_t> order_, features_;
    std::vector<char> listed_;  // features, while those of a label are put together
    double bias_ = 0;
};

}  // namespace labelsense
