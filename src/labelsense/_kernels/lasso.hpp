// The Lasso by its LARS path: min ||h - A y||^2 / 2 + lambda ||y||_1 for falling lambda, knot by knot.
//
// All active columns have correlation +-lambda. Moving along w = (A_J' A_J)^-1 sign lowers them at rate one until
// an inactive column reaches lambda and joins, or an active coefficient reaches zero and is dropped. The answer
// for a support size is the first knot at which the solution has that many non-zeros.
#pragma once

#include <tuple>

#include "decode.hpp"

namespace labelsense {

template <class Op>
class Lasso {
  public:
    Lasso(const Op& op, int64_t largest)
        : op_(op), active_(op, std::min(2 * largest + 32, op.m)), c_(make_floats(op.width)), a_(make_floats(op.width)),
          max_steps_(20 + 10 * largest) {}

    Outcome run(const float* h, double length, Row& row) {
        active_.clear();
        y_.clear();
        sign_.clear();
        passed_over_.clear();
        const double enough = NOTHING_LEFT * length;
        op_.correlate(h, c_.get());
        float best;
        int64_t j = argmax(Absolute{c_.get()}, op_.d, &best);
        double lambda = best;
        int64_t dropped = -1;
        double dropped_sign = 0;
        Outcome outcome = FITTED;
        for (int64_t step = 0; !row.done() && lambda > enough; ++step) {
            if (step == max_steps_) {
                outcome = NOT_CONVERGED;
                break;
            }
            if (j >= 0) {
                double sign = c_[j] > 0 ? 1 : -1;
                if (active_.append(j, 0)) {
                    sign_.push_back(sign);
                    y_.push_back(0);
                } else {
                    passed_over_.push_back(j);
                    outcome = RANK_DEFICIENT;
                }
            }
            active_.solve_gram(sign_, w_);
            active_.correlate_residual(nullptr, nullptr, w_, a_.get());  // -A' A_J w

            int64_t drop = -1;
            double step_length = lambda;
            for (int64_t i = 0; i < active_.size(); ++i)
                if (y_[i] * w_[i] < 0 && -y_[i] / w_[i] < step_length) step_length = -y_[i] / w_[i], drop = i;
            j = next_to_join(lambda, dropped, dropped_sign, &step_length);
            if (j >= 0) drop = -1;

            last_J_ = active_.J;
            last_y_ = y_;
            for (int64_t i = 0; i < active_.size(); ++i) y_[i] += step_length * w_[i];
            float change = static_cast<float>(step_length);
            for (int64_t i = 0; i < op_.width; i += LANES) store(&c_[i], load(&c_[i]) + load(&a_[i]) * change);
            lambda -= step_length;
            dropped = -1;
            if (drop >= 0) {
                dropped = active_.J[drop];
                dropped_sign = sign_[drop];
                active_.erase(drop);
                y_.erase(y_.begin() + drop);
                sign_.erase(sign_.begin() + drop);
            }
            int64_t nonzeros = std::count_if(y_.begin(), y_.end(), [](double y) { return y != 0; });
            // Columns that join together make the support jump past a size: its answer is the knot before.
            while (!row.done() && row.wanted() < nonzeros) row.emit(last_J_, last_y_);
            while (!row.done() && row.wanted() == nonzeros) row.emit(active_.J, y_);
        }
        row.emit_rest(active_.J, y_);
        return outcome;
    }

  private:
    // The inactive column that first reaches the falling lambda within *step, which is shortened; or -1.
    // Take the column that is most above lambda at the end of the step, end the step where that one reaches lambda, and
    // look again: a few vectorised passes instead of two divisions a column.
    int64_t next_to_join(double lambda, int64_t dropped, double dropped_sign, double* step) {
        for (int64_t i : active_.J) hide(i);
        for (int64_t i : passed_over_) hide(i);
        int64_t best = -1;
        if (dropped >= 0) {  // at lambda now and about to fall below it: only the other side counts
            double reach = reaches(dropped, -dropped_sign, lambda);
            if (reach < *step) *step = reach, best = dropped;
            hide(dropped);
        }
        for (;;) {
            float most;
            int64_t j = argmax(AbsoluteMoved{c_.get(), a_.get(), static_cast<float>(*step)}, op_.d, &most);
            if (most <= lambda - *step) break;
            double reach = std::min(reaches(j, 1, lambda), reaches(j, -1, lambda));
            if (reach >= *step) break;
            *step = reach;
            best = j;
        }
        for (const auto& [i, c, a] : hidden_) c_[i] = c, a_[i] = a;
        hidden_.clear();
        return best;
    }

    // The step after which column j has correlation sign * lambda.
    double reaches(int64_t j, double sign, double lambda) const {
        double closing = 1 + sign * static_cast<double>(a_[j]);
        return closing > 0 ? std::max(0.0, (lambda - sign * c_[j]) / closing) : INFINITY;
    }

    void hide(int64_t i) {
        hidden_.emplace_back(i, c_[i], a_[i]);
        c_[i] = 0;
        a_[i] = 0;
    }

    const Op& op_;
    Active<Op> active_;
    Floats c_, a_;
    int64_t max_steps_;
    std::vector<double> y_, sign_, w_;
    std::vector<double> last_y_;
    std::vector<int64_t> last_J_, passed_over_;
    std::vector<std::tuple<int64_t, float, float>> hidden_;
};

}  // namespace labelsense
