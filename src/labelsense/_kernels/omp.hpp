// Orthogonal matching pursuit: the paper's Algorithm 3.
//
// For labels that are not negative, only positive correlations count and the fit stays non-negative: this is Lawson and
// Hanson's method for non-negative least squares, ended at the first solution of each support size.
#pragma once

#include "decode.hpp"

namespace labelsense {

template <class Op>
class Omp {
  public:
    Omp(const Op& op, int64_t largest, bool nonnegative, double penalty)
        : op_(op), active_(op, std::min(largest, op.m), penalty), c0_(make_floats(op.width)), c_(make_floats(op.width)),
          nonnegative_(nonnegative), max_steps_(20 + 10 * largest) {}

    Outcome run(const float* h, double length, Row& row) {
        active_.clear();
        y_.clear();
        const double enough = NOTHING_LEFT * length;
        op_.correlate(h, c0_.get());
        const float* c = c0_.get();
        Outcome outcome = FITTED;
        for (int64_t step = 0; !row.done(); ++step) {
            float best;
            int64_t j = nonnegative_ ? most_positive(c, op_.inverse_norms, op_.d, &best)
                                     : most_correlated(c, op_.inverse_norms, op_.d, &best);
            if (best <= enough) break;
            if (step == max_steps_ || !active_.append(j, c0_[j])) {
                outcome = step == max_steps_ ? NOT_CONVERGED : RANK_DEFICIENT;
                break;
            }
            if (nonnegative_ && !fit_nonnegative()) break;
            if (!nonnegative_) active_.coefficients(y_);
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
    // Walks from the last fit towards the least-squares one and drops each column that reaches zero on the way.
    // False, and the last fit, if the new column does not even start upwards: its correlation was rounding.
    bool fit_nonnegative() {
        last_ = y_;
        active_.coefficients(y_);
        if (y_.back() <= 0) {
            active_.erase(active_.size() - 1);
            y_ = last_;
            return false;
        }
        last_.push_back(0);
        for (;;) {
            int64_t place = -1;
            double step = 1;
            for (int64_t i = 0; i < active_.size(); ++i)
                if (y_[i] < 0 && last_[i] < step * (last_[i] - y_[i])) step = last_[i] / (last_[i] - y_[i]), place = i;
            if (place < 0) return true;
            for (int64_t i = 0; i < active_.size(); ++i) last_[i] += step * (y_[i] - last_[i]);
            active_.erase(place);
            last_.erase(last_.begin() + place);
            active_.coefficients(y_);
        }
    }

    const Op& op_;
    Active<Op> active_;
    Floats c0_, c_;
    bool nonnegative_;
    int64_t max_steps_;
    std::vector<double> y_, last_;
};

}  // namespace labelsense
