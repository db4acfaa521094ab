// Zhang's adaptive forward-backward greedy algorithm (FoBa).
//
// A forward step adds the column OMP would add. Backward steps follow while removing the least useful column
// raises the squared error by no more than nu times what the forward step at this size had gained.
#pragma once

#include "decode.hpp"

namespace labelsense {

template <class Op>
class Foba {
  public:
    Foba(const Op& op, int64_t largest, double nu)
        : op_(op), active_(op, std::min(largest, op.m)), c0_(make_floats(op.width)), c_(make_floats(op.width)), nu_(nu),
          max_steps_(20 + 10 * largest) {}

    Outcome run(const float* h, double length, Row& row) {
        active_.clear();
        y_.clear();
        gains_.clear();
        const double enough = NOTHING_LEFT * length;
        op_.correlate(h, c0_.get());
        const float* c = c0_.get();
        Outcome outcome = FITTED;
        for (int64_t step = 0; !row.done(); ++step) {
            float best;
            int64_t j = most_correlated(c, op_.inverse_norms, op_.d, &best);
            if (best <= enough) break;
            if (step == max_steps_ || !active_.append(j, c0_[j])) {
                outcome = step == max_steps_ ? NOT_CONVERGED : RANK_DEFICIENT;
                break;
            }
            gains_.push_back(active_.z.back() * active_.z.back());
            active_.coefficients(y_);
            step_back();
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
    // At the least-squares fit, leaving out column i alone costs exactly y_i^2 ||a_i||^2.
    void step_back() {
        while (active_.size() > 1) {
            int64_t place = 0;
            double least = INFINITY;
            for (int64_t i = 0; i < active_.size(); ++i) {
                double cost = y_[i] * y_[i] * op_.gram(active_.J[i], active_.J[i]);
                if (cost < least) least = cost, place = i;
            }
            if (least > nu_ * gains_.back()) return;
            active_.erase(place);
            gains_.pop_back();
            active_.coefficients(y_);
        }
    }

    const Op& op_;
    Active<Op> active_;
    Floats c0_, c_;
    double nu_;
    int64_t max_steps_;
    std::vector<double> y_, gains_;
};

}  // namespace labelsense
