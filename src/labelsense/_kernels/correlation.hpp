// Correlation decoding: the top columns of |A'h|, then least squares on them. Read this one first.
#pragma once

#include "decode.hpp"

namespace labelsense {

template <class Op>
class Correlation {
  public:
    Correlation(const Op& op, int64_t largest)
        : op_(op), active_(op, std::min(largest, op.m)), c_(make_floats(op.width)), largest_(largest) {}

    Outcome run(const float* h, double, Row& row) {
        active_.clear();
        y_.clear();
        op_.correlate(h, c_.get());
        top_abs(c_.get(), op_.d, largest_, top_);
        Outcome outcome = Outcome::FITTED;
        for (size_t t = 0; t < top_.size() && !row.done(); ++t) {
            // A column in the span of better ones adds nothing to the fit and is left out of it.
            if (c_[top_[t]] == 0) break;
            if (!active_.append(top_[t], c_[top_[t]])) outcome = Outcome::RANK_DEFICIENT;
            if (static_cast<int64_t>(t) + 1 == row.wanted()) {
                active_.coefficients(y_);
                row.emit(active_.J, y_);
            }
        }
        active_.coefficients(y_);
        row.emit_rest(active_.J, y_);
        return outcome;
    }

  private:
    const Op& op_;
    Active<Op> active_;
    Floats c_;
    int64_t largest_;
    std::vector<int64_t> top_;
    std::vector<double> y_;
};

}  // namespace labelsense
