// Orthogonal matching pursuit: the paper's Algorithm 3.
#pragma once

#include "decode.hpp"

namespace labelsense {

template <class Op>
class Omp {
  public:
    Omp(const Op& op, int64_t largest)
        : op_(op), active_(op, std::min(largest, op.m)), c0_(make_floats(op.width)), c_(make_floats(op.width)) {}

    Outcome run(const float* h, Row& row) {
        active_.clear();
        y_.clear();
        const double enough = NOTHING_LEFT * norm(h, op_.m);
        op_.correlate(h, c0_.get());
        const float* c = c0_.get();
        Outcome outcome = FITTED;
        while (!row.done()) {
            float best;
            int64_t j = most_correlated(c, op_.inverse_norms, op_.d, &best);
            if (best <= enough) break;
            if (!active_.append(j, c0_[j])) {
                outcome = RANK_DEFICIENT;
                break;
            }
            active_.coefficients(y_);
            while (!row.done() && row.wanted() == active_.size()) row.emit(active_.J, y_);
            if (row.done()) break;
            active_.correlate_residual(h, c0_.get(), y_, c_.get());
            for (int64_t i : active_.J) c_[i] = 0;
            c = c_.get();
        }
        row.emit_rest(active_.J, y_);
        return outcome;
    }

  private:
    const Op& op_;
    Active<Op> active_;
    Floats c0_, c_;
    std::vector<double> y_;
};

}  // namespace labelsense
