// What the greedy pursuits share: while there is room and something to fit, grow the support by what is most correlated
// with the residual, and fit it again. The support never has more than m columns.
//
// An algorithm derives from Greedy with itself as the second argument, and says what is its own:
//
//   grow(c, room, ...)  choose and append columns, at most `room`
//   fit(y)              their coefficients; may take columns back. False ends the pursuit
//   restart()           forget the last row
//   NESTED              whether the pursuit for one size goes on to the next
#pragma once

#include "decode.hpp"

namespace labelsense {

template <class Op, class Algorithm>
class Greedy {
  public:
    static constexpr bool NESTED = true;

    Outcome run(const float* h, double length, Row& row) {
        op_.correlate(h, c0_.get());
        Outcome outcome = Outcome::FITTED;
        while (!row.done()) {
            Outcome this_time = pursue(h, NOTHING_LEFT * length, row);
            if (this_time != Outcome::FITTED) outcome = this_time;
        }
        return outcome;
    }

  protected:
    Greedy(const Op& op, int64_t largest, double penalty = 0)
        : op_(op), active_(op, std::min(largest, op.m), penalty), c0_(make_floats(op.width)), c_(make_floats(op.width)),
          max_steps_(20 + 10 * largest) {}

    // One column, as OMP does. False, with the outcome, where there is none.
    bool grow(const float* c, int64_t, double enough, Outcome* outcome) {
        float best;
        int64_t j = self().search(c, &best);
        if (best <= enough) return false;
        if (active_.append(j, c0_[j])) return true;
        *outcome = Outcome::RANK_DEFICIENT;
        return false;
    }

    int64_t search(const float* c, float* best) const { return most_correlated(c, op_.inverse_norms, op_.d, best); }

    bool fit(std::vector<double>& y) {
        active_.coefficients(y);
        return true;
    }

    void restart() {}

    const Op& op_;
    Active<Op> active_;
    Floats c0_, c_;  // A'h, and A'r with zeros at the active columns

  private:
    Algorithm& self() { return static_cast<Algorithm&>(*this); }

    Outcome pursue(const float* h, double enough, Row& row) {
        active_.clear();
        y_.clear();
        self().restart();
        const int64_t first = row.wanted();
        const float* c = c0_.get();
        Outcome outcome = Outcome::FITTED;
        for (int64_t step = 0;; ++step) {
            if (step == max_steps_) {
                outcome = Outcome::NOT_CONVERGED;
                break;
            }
            if (!self().grow(c, row.wanted() - active_.size(), enough, &outcome) || !self().fit(y_)) break;
            while (!row.done() && row.wanted() == active_.size()) row.emit(active_.J, y_);
            if (row.done() || (!Algorithm::NESTED && row.wanted() != first)) return Outcome::FITTED;
            active_.correlate_residual(h, c0_.get(), y_, c_.get());
            for (int64_t i : active_.J) c_[i] = 0;
            c = c_.get();
        }
        row.emit_rest(active_.J, y_);
        return outcome;
    }

    int64_t max_steps_;
    std::vector<double> y_;
};

}  // namespace labelsense
