// What every decoder shares: the output arrays, the outcome of a row, and the loop over rows.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "active.hpp"
#include "operators.hpp"
#include "search.hpp"

namespace labelsense {

// Correlations below this fraction of ||h|| are rounding: there is nothing left to fit.
constexpr double NOTHING_LEFT = 1e-6;

enum Outcome { FITTED = 0, RANK_DEFICIENT = 1, NOT_CONVERGED = 2 };

// For each row and each requested support size, ascending: labels, ascending, and coefficients.
struct Output {
    std::vector<int64_t> sizes;
    int64_t* index;  // (n, n_sizes, largest)
    float* value;
    int64_t* count;  // (n, n_sizes)

    int64_t largest() const { return sizes.back(); }
};

// One row of the output, filled size by size.
class Row {
  public:
    explicit Row(const Output& out) : out_(out) {}

    void start(int64_t row) {
        row_ = row;
        next_ = 0;
    }

    bool done() const { return next_ == out_.sizes.size(); }
    int64_t wanted() const { return out_.sizes[next_]; }

    void emit(const std::vector<int64_t>& J, const std::vector<double>& y) {
        int64_t place = row_ * static_cast<int64_t>(out_.sizes.size()) + static_cast<int64_t>(next_++);
        order_.clear();
        for (size_t i = 0; i < J.size(); ++i)
            if (y[i] != 0) order_.emplace_back(J[i], y[i]);
        std::sort(order_.begin(), order_.end());
        out_.count[place] = static_cast<int64_t>(order_.size());
        int64_t start = place * out_.largest();
        for (size_t i = 0; i < order_.size(); ++i) {
            out_.index[start + i] = order_[i].first;
            out_.value[start + i] = static_cast<float>(order_[i].second);
        }
    }

    // The algorithm has ended: what it has is its answer for the remaining sizes.
    void emit_rest(const std::vector<int64_t>& J, const std::vector<double>& y) {
        while (!done()) emit(J, y);
    }

  private:
    const Output& out_;
    int64_t row_ = 0;
    size_t next_ = 0;
    std::vector<std::pair<int64_t, double>> order_;
};

// Runs the algorithm on each row of H (n, m), which it gets as the operator takes it, with its norm. Returns how many
// rows ended in each outcome.
template <class Algorithm, class Op>
std::vector<int64_t> decode_rows(Algorithm& algorithm, const Op& op, const float* H, int64_t n, const Output& out) {
    std::vector<int64_t> outcomes(3);
    Row row(out);
    constexpr int64_t BATCH = 16;
    int64_t stride = round_up(op.m, TILE);
    Floats taken = make_floats(BATCH * stride);
    for (int64_t i = 0; i < n; ++i) {
        const float* h = H + i * op.m;
        if (i % BATCH == 0) op.take(h, std::min(BATCH, n - i), taken.get(), stride);
        row.start(i);
        ++outcomes[algorithm.run(taken.get() + i % BATCH * stride, norm(h, op.m), row)];
    }
    return outcomes;
}

}  // namespace labelsense
