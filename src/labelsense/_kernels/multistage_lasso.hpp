// Zhang's multi-stage convex relaxation for the capped l1 penalty, the sum of min(|y_j|, theta): a Lasso, then again and
// again one in which the columns with |y_j| > theta are free of the penalty, until these stay the same.
//
// Each stage follows its path to the first knot with the wanted number of non-zeros, as Lasso does. Theta is a share of
// the largest coefficient of the first stage.
#pragma once

#include "lasso_path.hpp"

namespace labelsense {

template <class Op>
class MultistageLasso {
  public:
    MultistageLasso(const Op& op, int64_t largest, double theta, int64_t max_stages)
        : path_(op, largest), theta_(theta), max_stages_(max_stages) {}

    Outcome run(const float* h, double length, Row& row) {
        Outcome outcome = Outcome::FITTED;
        while (!row.done()) {
            Outcome this_size = fit(h, length, row.wanted());
            if (this_size != Outcome::FITTED) outcome = this_size;
            row.emit(J_, y_);
        }
        return outcome;
    }

  private:
    Outcome fit(const float* h, double length, int64_t size) {
        free_.clear();
        double theta = 0;
        for (int64_t stage = 0; stage < max_stages_; ++stage) {
            path_.start(h, length, free_);
            while (path_.nonzeros() < size && path_.step()) continue;
            bool past = path_.nonzeros() > size;  // columns joined together
            J_ = past ? path_.last_J() : path_.J();
            y_ = past ? path_.last_y() : path_.y();
            if (stage == 0)
                for (double y : y_) theta = std::max(theta, theta_ * std::fabs(y));
            large_.clear();
            for (size_t i = 0; i < J_.size(); ++i)
                if (std::fabs(y_[i]) > theta) large_.push_back(J_[i]);
            std::sort(large_.begin(), large_.end());
            if (large_ == free_) break;
            free_.swap(large_);
        }
        return path_.outcome();
    }

    LassoPath<Op> path_;
    double theta_;
    int64_t max_stages_;
    std::vector<int64_t> free_, large_, J_;
    std::vector<double> y_;
};

}  // namespace labelsense
