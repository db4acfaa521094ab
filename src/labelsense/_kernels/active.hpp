// The active set J of a decoder: its least-squares fit to h by a growing Cholesky factor L L' = A_J' A_J, or its ridge fit
// with a penalty on the diagonal.
//
// With z = L^-1 A_J' h, the squared error is ||h||^2 - ||z||^2 and the coefficients are L^-T z. Everything
// here is of the size of the support, in double; what is of the size of A stays in the operator, in float.
//
// So A_J' h comes rounded to floats, and L^-1 amplifies that. A column depends on the others where what it would add to z
// is rounding: `noise_` follows the variances of these errors, as multiples of that of one product a_j' h, row by row of L.
// For the second column that is a bound on its angle with the first; a chain of columns, each nearly in the span of those
// before, is found out as well.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "simd.hpp"

namespace labelsense {

constexpr int64_t TILE = 4 * LANES;  // vectors of length m are padded to this

template <class Op>
class Active {
  public:
    std::vector<int64_t> J;
    std::vector<double> z;

    Active(const Op& op, int64_t capacity, double penalty = 0, double dependent = Op::DEPENDENT)
        : op_(op), penalty_(penalty), dependent_(dependent), stride_(round_up(op.m, TILE)), L_(capacity * capacity), inverse_(capacity),
          columns_(make_floats(capacity * stride_)), r_(make_floats(stride_)), capacity_(capacity) {
        J.reserve(capacity);
        z.reserve(capacity);
        noise_.reserve(capacity);
        free_.reserve(capacity);
        slot_.reserve(capacity);
    }

    int64_t size() const { return static_cast<int64_t>(J.size()); }

    void clear() {
        truncate(0);
        free_.clear();
        for (int64_t s = capacity_ - 1; s >= 0; --s) free_.push_back(s);
    }

    // Adds column j with b = a_j' h. False, and no change, if it depends linearly on the columns already there.
    bool append(int64_t j, double b) {
        int64_t t = size();
        if (t == capacity_) return false;
        double left = op_.gram(j, j) + penalty_, rest = b, inherited = 0;
        double* row = &L_[t * capacity_];
        for (int64_t i = 0; i < t; ++i) {
            const double* other = &L_[i * capacity_];
            double x = op_.gram(J[i], j);
            for (int64_t k = 0; k < i; ++k) x -= other[k] * row[k];
            row[i] = x * inverse_[i];
            left -= row[i] * row[i];
            rest -= row[i] * z[i];
            inherited += row[i] * row[i] * (1 + noise_[i]);
        }
        if (!(left > dependent_ * (left + inherited))) return false;
        row[t] = std::sqrt(left);
        inverse_[t] = 1.0 / row[t];
        J.push_back(j);
        z.push_back(rest * inverse_[t]);
        noise_.push_back(1 + inherited / left);
        slot_.push_back(-1);
        return true;
    }

    // Removes the atom at this place. The rows of L below it move up, and rotations of neighbouring columns make them
    // triangular again: L z = A_J' h holds throughout, and no column that was independent can become dependent.
    void erase(int64_t place) {
        int64_t t = size() - 1;
        if (slot_[place] >= 0) free_.push_back(slot_[place]);
        J.erase(J.begin() + place);
        slot_.erase(slot_.begin() + place);
        for (int64_t i = place; i < t; ++i)
            std::copy(&L_[(i + 1) * capacity_], &L_[(i + 1) * capacity_] + i + 2, &L_[i * capacity_]);
        for (int64_t k = place; k < t; ++k) {
            double x = L_[k * capacity_ + k], y = L_[k * capacity_ + k + 1];
            double length = std::sqrt(x * x + y * y), cosine = x / length, sine = y / length;
            for (int64_t i = k; i < t; ++i) rotate(&L_[i * capacity_ + k], cosine, sine);
            rotate(&z[k], cosine, sine);
            inverse_[k] = 1.0 / L_[k * capacity_ + k];
            double inherited = 0;
            for (int64_t i = 0; i < k; ++i) inherited += L_[k * capacity_ + i] * L_[k * capacity_ + i] * (1 + noise_[i]);
            noise_[k] = 1 + inherited * inverse_[k] * inverse_[k];
        }
        z.resize(t);
        noise_.resize(t);
    }

    // y = L^-T x
    void back_substitute(const std::vector<double>& x, std::vector<double>& y) const {
        y.assign(x.begin(), x.end());
        for (int64_t i = size() - 1; i >= 0; --i) {
            const double* row = &L_[i * capacity_];
            double value = y[i] *= inverse_[i];
            for (int64_t k = 0; k < i; ++k) y[k] -= row[k] * value;
        }
    }

    void coefficients(std::vector<double>& y) const { back_substitute(z, y); }

    // y = (A_J' A_J)^-1 x
    void solve_gram(const std::vector<double>& x, std::vector<double>& y) {
        work_.assign(x.begin(), x.end());
        for (int64_t i = 0; i < size(); ++i) {
            const double* row = &L_[i * capacity_];
            for (int64_t k = 0; k < i; ++k) work_[i] -= row[k] * work_[k];
            work_[i] *= inverse_[i];
        }
        back_substitute(work_, y);
    }

    // r = h - A_J y, padded with zeros; h null stands for 0.
    const float* residual(const float* h, const std::vector<double>& y) {
        sources_.clear();
        weights_.clear();
        for (int64_t i = 0; i < size(); ++i)
            if (y[i] != 0) {
                sources_.push_back(column(i));
                weights_.push_back(static_cast<float>(y[i]));
            }
        for (int64_t r = 0; r < stride_; r += TILE) {
            f8 sum[TILE / LANES] = {};
            if (h)
#pragma GCC unroll 4
                for (int q = 0; q < TILE / LANES; ++q) sum[q] = load(h + r + q * LANES);
            for (size_t i = 0; i < sources_.size(); ++i)
#pragma GCC unroll 4
                for (int q = 0; q < TILE / LANES; ++q) sum[q] -= load(sources_[i] + r + q * LANES) * weights_[i];
#pragma GCC unroll 4
            for (int q = 0; q < TILE / LANES; ++q) store(r_.get() + r + q * LANES, sum[q]);
        }
        return r_.get();
    }

    // c = A' (h - A_J y), given c0 = A' h; h and c0 null stand for 0.
    void correlate_residual(const float* h, const float* c0, const std::vector<double>& y, float* c) {
        if (op_.cheap_gram(size())) op_.subtract_gram(c0, J.data(), y.data(), size(), c);
        else op_.correlate(residual(h, y), c);
    }

  private:
    // x = (x[0], x[1]) rotated towards x[0]
    static void rotate(double* x, double cosine, double sine) {
        double first = cosine * x[0] + sine * x[1];
        x[1] = cosine * x[1] - sine * x[0];
        x[0] = first;
    }

    void truncate(int64_t n) {
        J.resize(n);
        z.resize(n);
        noise_.resize(n);
        slot_.resize(n);
    }

    // Columns are expanded when first needed.
    const float* column(int64_t i) {
        if (slot_[i] < 0) {
            slot_[i] = free_.back();
            free_.pop_back();
            op_.column(J[i], columns_.get() + slot_[i] * stride_);
        }
        return columns_.get() + slot_[i] * stride_;
    }

    const Op& op_;
    double penalty_, dependent_;
    int64_t stride_;
    std::vector<double> L_, inverse_, noise_, work_;
    Floats columns_, r_;
    std::vector<int64_t> slot_, free_;
    std::vector<const float*> sources_;
    std::vector<float> weights_;
    int64_t capacity_;
};

}  // namespace labelsense
