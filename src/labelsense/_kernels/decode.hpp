// What every decoder shares: the output arrays, the outcome of a row, and the loop over rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "active.hpp"
#include "operators.hpp"
#include "search.hpp"

namespace labelsense {

// Correlations below this fraction of ||h|| are rounding: there is nothing left to fit.
constexpr double NOTHING_LEFT = 1e-6;

// How a row ended. reconstruct/outcomes.py has the same list with what is said about each.
enum class Outcome { FITTED, RANK_DEFICIENT, NOT_CONVERGED, NOT_FINITE };
constexpr size_t N_OUTCOMES = 4;

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

    // Coefficients will come in multiples of `unit`.
    void start(int64_t row, double unit) {
        row_ = row;
        unit_ = unit;
        next_ = 0;
        finite_ = true;
    }

    bool done() const { return next_ == out_.sizes.size(); }
    int64_t wanted() const { return out_.sizes[next_]; }
    bool finite() const { return finite_; }

    // Where a coefficient is too large for a float, nothing is written: the labels are not known in that size.
    void emit(const std::vector<int64_t>& J, const std::vector<double>& y) {
        int64_t place = row_ * static_cast<int64_t>(out_.sizes.size()) + static_cast<int64_t>(next_++);
        order_.clear();
        for (size_t i = 0; i < J.size(); ++i) {
            float value = static_cast<float>(y[i] * unit_);
            if (value != 0) order_.emplace_back(J[i], value);
            if (!std::isfinite(value)) {
                finite_ = false;
                order_.clear();
                break;
            }
        }
        std::sort(order_.begin(), order_.end());
        out_.count[place] = static_cast<int64_t>(order_.size());
        int64_t start = place * out_.largest();
        for (size_t i = 0; i < order_.size(); ++i) {
            out_.index[start + i] = order_[i].first;
            out_.value[start + i] = order_[i].second;
        }
    }

    // The algorithm has ended: what it has is its answer for the remaining sizes.
    void emit_rest(const std::vector<int64_t>& J, const std::vector<double>& y) {
        while (!done()) emit(J, y);
    }

  private:
    const Output& out_;
    int64_t row_ = 0;
    double unit_ = 1;
    size_t next_ = 0;
    bool finite_ = true;
    std::vector<std::pair<int64_t, float>> order_;
};

// The power of two in which a row of this norm is measured, so that its correlations neither overflow nor lose digits. It
// is 1 for ordinary rows, and changes no digit of the others: decoders are linear in it.
inline double unit_of(double length) {
    constexpr double ORDINARY = 1 << 30;
    bool ordinary = length == 0 || (length >= 1 / ORDINARY && length <= ORDINARY);
    return ordinary ? 1.0 : std::ldexp(1.0, std::ilogb(length));
}

// Runs the algorithm on each row of H (n, m), which it gets as the operator takes it, with its norm. Returns how many
// rows ended in each outcome.
template <class Algorithm, class Op>
std::vector<int64_t> decode_rows(Algorithm& algorithm, const Op& op, const float* H, int64_t n, const Output& out) {
    constexpr int64_t BATCH = 16;
    std::vector<int64_t> outcomes(N_OUTCOMES);
    Row row(out);
    int64_t stride = round_up(op.m, TILE);
    Floats taken = make_floats(BATCH * stride), in_units = make_floats(BATCH * op.m);
    double length[BATCH], unit[BATCH];
    for (int64_t first = 0; first < n; first += BATCH) {
        int64_t rows = std::min(BATCH, n - first);
        const float* h = H + first * op.m;
        bool ordinary = true;
        for (int64_t i = 0; i < rows; ++i) {
            length[i] = norm(h + i * op.m, op.m);
            unit[i] = unit_of(length[i]);
            ordinary = ordinary && unit[i] == 1;
        }
        if (!ordinary) {
            for (int64_t i = 0; i < rows; ++i)
                for (int64_t r = i * op.m; r < (i + 1) * op.m; ++r) in_units[r] = static_cast<float>(h[r] / unit[i]);
            h = in_units.get();
        }
        op.take(h, rows, taken.get(), stride);
        for (int64_t i = 0; i < rows; ++i) {
            row.start(first + i, unit[i] / op.unit);
            Outcome outcome = algorithm.run(taken.get() + i * stride, length[i] / unit[i], row);
            ++outcomes[static_cast<size_t>(row.finite() ? outcome : Outcome::NOT_FINITE)];
        }
    }
    return outcomes;
}

}  // namespace labelsense
