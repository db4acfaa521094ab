// CoSaMP (Needell and Tropp): each round merges the 2s columns most correlated with the residual into the
// support, fits them all by least squares and keeps the s largest coefficients, while the residual falls.
#pragma once

#include "decode.hpp"

namespace labelsense {

template <class Op>
class Cosamp {
  public:
    Cosamp(const Op& op, int64_t largest, int64_t max_rounds)
        : op_(op), active_(op, std::min(3 * largest, op.m)), c0_(make_floats(op.width)), c_(make_floats(op.width)),
          max_rounds_(max_rounds) {}

    Outcome run(const float* h, double length, Row& row) {
        op_.correlate(h, c0_.get());
        Outcome outcome = Outcome::FITTED;
        while (!row.done()) {
            Outcome this_size = fit(h, length, row.wanted());
            if (this_size != Outcome::FITTED) outcome = this_size;
            row.emit(support_, values_);
        }
        return outcome;
    }

  private:
    Outcome fit(const float* h, double length, int64_t s) {
        support_.clear();
        values_.clear();
        double error = length;
        const float* c = c0_.get();
        for (int64_t round = 0; round < max_rounds_; ++round) {
            if (error <= NOTHING_LEFT * length) return Outcome::FITTED;
            merge(c, s);
            active_.coefficients(y_);
            for (double y : y_)
                if (!std::isfinite(y)) return Outcome::NOT_FINITE;  // which cannot be sorted; the support of the last round stands
            prune(s);
            const float* r = active_.residual(h, y_);
            double now = op_.norm(r);
            if (!(now < error)) return Outcome::FITTED;
            error = now;
            support_.clear();
            values_.clear();
            for (int64_t i = 0; i < active_.size(); ++i)
                if (y_[i] != 0) {
                    support_.push_back(active_.J[i]);
                    values_.push_back(y_[i]);
                }
            op_.correlate(r, c_.get());
            c = c_.get();
        }
        return Outcome::NOT_CONVERGED;
    }

    // Columns that depend on those before them are passed over: the support first, then by correlation.
    void merge(const float* c, int64_t s) {
        active_.clear();
        for (int64_t j : support_) active_.append(j, c0_[j]);
        top_abs(c, op_.d, 2 * s, top_);
        for (int64_t j : top_)
            if (c[j] != 0 && std::find(support_.begin(), support_.end(), j) == support_.end()) active_.append(j, c0_[j]);
    }

    // Zero for all but the s largest coefficients; ties to the lowest label.
    void prune(int64_t s) {
        if (active_.size() <= s) return;
        keep_.resize(active_.size());
        for (size_t i = 0; i < keep_.size(); ++i) keep_[i] = static_cast<int64_t>(i);
        std::sort(keep_.begin(), keep_.end(), [&](int64_t i, int64_t j) {
            double x = std::fabs(y_[i]), y = std::fabs(y_[j]);
            return x > y || (x == y && active_.J[i] < active_.J[j]);
        });
        for (size_t i = s; i < keep_.size(); ++i) y_[keep_[i]] = 0;
    }

    const Op& op_;
    Active<Op> active_;
    Floats c0_, c_;
    int64_t max_rounds_;
    std::vector<int64_t> support_, top_, keep_;
    std::vector<double> values_, y_;
};

}  // namespace labelsense
