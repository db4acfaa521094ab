// Zhang's adaptive forward-backward greedy algorithm (FoBa).
//
// A forward step adds the column OMP would add. Backward steps follow while removing the least useful column
// raises the squared error by no more than nu times what the forward step at this size had gained.
#pragma once

#include "greedy.hpp"

namespace labelsense {

template <class Op>
class Foba : public Greedy<Op, Foba<Op>> {
    using Base = Greedy<Op, Foba<Op>>;
    friend Base;

  public:
    Foba(const Op& op, int64_t largest, double nu) : Base(op, largest), nu_(nu) {}

  private:
    void restart() { gains_.clear(); }

    // At the least-squares fit, leaving out column i alone costs exactly y_i^2 ||a_i||^2.
    bool fit(std::vector<double>& y) {
        gains_.push_back(active_.z.back() * active_.z.back());
        active_.coefficients(y);
        while (active_.size() > 1) {
            int64_t place = 0;
            double least = INFINITY;
            for (int64_t i = 0; i < active_.size(); ++i) {
                double cost = y[i] * y[i] * op_.gram(active_.J[i], active_.J[i]);
                if (cost < least) least = cost, place = i;
            }
            if (least > nu_ * gains_.back()) break;
            active_.erase(place);
            gains_.pop_back();
            active_.coefficients(y);
        }
        return true;
    }

    using Base::active_;
    using Base::op_;
    double nu_;
    std::vector<double> gains_;
};

}  // namespace labelsense
