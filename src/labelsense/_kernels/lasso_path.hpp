// The path of the Lasso: the minimum of ||h - A y||^2 / 2 + lambda ||y||_1 for falling lambda, knot by knot. Columns can be
// free of the penalty.
//
// All active columns have correlation +-lambda, free ones 0. Moving along w = (A_J' A_J)^-1 sign, with sign 0 for free
// columns, lowers the former at rate one until an inactive column reaches lambda and joins, or an active coefficient
// reaches zero and is dropped.
#pragma once

#include <tuple>

#include "decode.hpp"

namespace labelsense {

template <class Op>
class LassoPath {
  public:
    LassoPath(const Op& op, int64_t largest)
        : op_(op), active_(op, std::min(2 * largest + 32, op.m), 0, DEPENDENT), c_(make_floats(op.width)),
          a_(make_floats(op.width)), max_steps_(20 + 10 * largest) {}

    // At this knot, and at the one before.
    const std::vector<int64_t>& J() const { return active_.J; }
    const std::vector<double>& y() const { return y_; }
    const std::vector<int64_t>& last_J() const { return last_J_; }
    const std::vector<double>& last_y() const { return last_y_; }

    Outcome outcome() const { return outcome_; }

    int64_t nonzeros() const {
        return std::count_if(y_.begin(), y_.end(), [](double y) { return y != 0; });
    }

    // To lambda so large that only the free columns are not zero: they are fitted by least squares.
    void start(const float* h, double length, const std::vector<int64_t>& free) {
        active_.clear();
        y_.clear();
        sign_.clear();
        passed_over_.clear();
        outcome_ = Outcome::FITTED;
        steps_ = 0;
        enough_ = NOTHING_LEFT * length;
        op_.correlate(h, c_.get());
        if (!free.empty()) {
            for (int64_t j : free)
                if (active_.append(j, c_[j])) sign_.push_back(0);
            active_.coefficients(y_);
            active_.correlate_residual(h, c_.get(), y_, c_.get());
            for (int64_t j : active_.J) c_[j] = 0;
        }
        last_J_ = active_.J;
        last_y_ = y_;
        float best;
        joining_ = argmax(Absolute{c_.get()}, op_.d, &best);
        dropped_ = -1;
        lambda_ = best;
    }

    // To the next knot. False at the end of the path.
    bool step() {
        if (!(lambda_ > enough_)) return false;
        if (steps_++ == max_steps_) {
            outcome_ = Outcome::NOT_CONVERGED;
            return false;
        }
        if (joining_ >= 0) join();
        else active_.solve_gram(sign_, w_);
        active_.correlate_residual(nullptr, nullptr, w_, a_.get());  // -A' A_J w

        int64_t drop = -1;
        double length = lambda_;
        for (int64_t i = 0; i < active_.size(); ++i)
            if (sign_[i] != 0 && y_[i] * w_[i] < 0 && -y_[i] / w_[i] < length) length = -y_[i] / w_[i], drop = i;
        joining_ = next_to_join(&length);
        if (joining_ >= 0) drop = -1;

        last_J_ = active_.J;
        last_y_ = y_;
        for (int64_t i = 0; i < active_.size(); ++i) y_[i] += length * w_[i];
        float change = static_cast<float>(length);
        for (int64_t i = 0; i < op_.width; i += LANES) store(&c_[i], load(&c_[i]) + load(&a_[i]) * change);
        lambda_ -= length;
        dropped_ = -1;
        if (drop >= 0) {
            dropped_ = active_.J[drop];
            dropped_sign_ = sign_[drop];
            active_.erase(drop);
            y_.erase(y_.begin() + drop);
            sign_.erase(sign_.begin() + drop);
        }
        return true;
    }

  private:
    // Stricter than for a fit: w is as large as one over this, and A' A_J w, which says who joins next, is a sum of floats.
    static constexpr double DEPENDENT = 1e-5;

    // Adds the joining column and turns to the new direction; passes the column over where it depends on the others.
    void join() {
        double sign = c_[joining_] > 0 ? 1 : -1;
        bool joined = active_.append(joining_, 0);
        if (joined) {
            sign_.push_back(sign);
            y_.push_back(0);
        }
        active_.solve_gram(sign_, w_);
        if (joined && w_.back() * sign > 0) return;
        passed_over_.push_back(joining_);
        outcome_ = Outcome::RANK_DEFICIENT;
        if (!joined) return;
        active_.erase(active_.size() - 1);  // a coefficient grows with the sign of its correlation, or is rounding
        sign_.pop_back();
        y_.pop_back();
        active_.solve_gram(sign_, w_);
    }

    // The inactive column that first reaches the falling lambda within *step, which is shortened; or -1.
    // Take the column that is most above lambda at the end of the step, end the step where that one reaches lambda, and
    // look again: a few vectorised passes instead of two divisions a column.
    int64_t next_to_join(double* step) {
        for (int64_t i : active_.J) hide(i);
        for (int64_t i : passed_over_) hide(i);
        int64_t best = -1;
        if (dropped_ >= 0) {  // at lambda now and about to fall below it: only the other side counts
            double reach = reaches(dropped_, -dropped_sign_);
            if (reach < *step) *step = reach, best = dropped_;
            hide(dropped_);
        }
        for (;;) {
            float most;
            int64_t j = argmax(AbsoluteMoved{c_.get(), a_.get(), static_cast<float>(*step)}, op_.d, &most);
            if (j < 0 || most <= lambda_ - *step) break;
            double reach = std::min(reaches(j, 1), reaches(j, -1));
            if (reach >= *step) break;
            *step = reach;
            best = j;
        }
        for (const auto& [i, c, a] : hidden_) c_[i] = c, a_[i] = a;
        hidden_.clear();
        return best;
    }

    // The step after which column j has correlation sign * lambda.
    double reaches(int64_t j, double sign) const {
        double closing = 1 + sign * static_cast<double>(a_[j]);
        return closing > 0 ? std::max(0.0, (lambda_ - sign * c_[j]) / closing) : INFINITY;
    }

    void hide(int64_t i) {
        hidden_.emplace_back(i, c_[i], a_[i]);
        c_[i] = 0;
        a_[i] = 0;
    }

    const Op& op_;
    Active<Op> active_;
    Floats c_, a_;
    int64_t max_steps_, steps_ = 0, joining_ = -1, dropped_ = -1;
    double lambda_ = 0, enough_ = 0, dropped_sign_ = 0;
    Outcome outcome_ = Outcome::FITTED;
    std::vector<double> y_, sign_, w_;
    std::vector<double> last_y_;
    std::vector<int64_t> last_J_, passed_over_;
    std::vector<std::tuple<int64_t, float, float>> hidden_;
};

}  // namespace labelsense
