// Orthogonal matching pursuit: the paper's Algorithm 3.
//
// For labels that are not negative, only positive correlations count and the fit stays non-negative: this is Lawson and
// Hanson's method for non-negative least squares, ended at the first solution of each support size.
#pragma once

#include "greedy.hpp"

namespace labelsense {

template <class Op>
class Omp : public Greedy<Op, Omp<Op>> {
    using Base = Greedy<Op, Omp<Op>>;
    friend Base;

  public:
    Omp(const Op& op, int64_t largest, bool nonnegative, double penalty)
        : Base(op, largest, penalty / (op.unit * op.unit)), nonnegative_(nonnegative) {}

  private:
    int64_t search(const float* c, float* best) const {
        return nonnegative_ ? most_positive(c, op_.inverse_norms, op_.d, best) : Base::search(c, best);
    }

    bool fit(std::vector<double>& y) { return nonnegative_ ? fit_nonnegative(y) : Base::fit(y); }

    // Walks from the last fit towards the least-squares one and drops each column that reaches zero on the way.
    // False, and the last fit, if the new column does not even start upwards: its correlation was rounding.
    bool fit_nonnegative(std::vector<double>& y) {
        last_ = y;
        active_.coefficients(y);
        if (y.back() <= 0) {
            active_.erase(active_.size() - 1);
            y = last_;
            return false;
        }
        last_.push_back(0);
        for (;;) {
            int64_t place = -1;
            double step = 1;
            for (int64_t i = 0; i < active_.size(); ++i)
                if (y[i] < 0 && last_[i] < step * (last_[i] - y[i])) step = last_[i] / (last_[i] - y[i]), place = i;
            if (place < 0) return true;
            for (int64_t i = 0; i < active_.size(); ++i) last_[i] += step * (y[i] - last_[i]);
            active_.erase(place);
            last_.erase(last_.begin() + place);
            active_.coefficients(y);
        }
    }

    using Base::active_;
    using Base::op_;
    bool nonnegative_;
    std::vector<double> last_;
};

}  // namespace labelsense
