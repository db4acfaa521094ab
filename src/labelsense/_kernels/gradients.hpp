// The passes of conjugate gradients over blocks of vectors (p, m), one column a system: each reads its arrays once.
#pragma once

#include <cstdint>

namespace labelsense {

// Rows [begin, end) of Q += alpha P - mean shift', and the columns' sums of P Q.
inline void finish_product(float* Q, const float* P, float alpha, const float* mean, const float* shift, int64_t begin,
                           int64_t end, int64_t m, double* curvature) {
    for (int64_t i = begin; i < end; ++i) {
        float* q = Q + i * m;
        const float* p = P + i * m;
        for (int64_t j = 0; j < m; ++j) {
            q[j] += alpha * p[j] - mean[i] * shift[j];
            curvature[j] += static_cast<double>(p[j]) * q[j];
        }
    }
}

// Rows [begin, end) of W += P step, R -= Q step, and the columns' sums of R^2 and of R^2 times `inverse`.
inline void take_step(float* W, float* R, const float* P, const float* Q, const float* step, const float* inverse,
                      int64_t begin, int64_t end, int64_t m, double* squares, double* preconditioned) {
    for (int64_t i = begin; i < end; ++i) {
        float *w = W + i * m, *r = R + i * m;
        const float *p = P + i * m, *q = Q + i * m;
        const double scale = inverse[i];
        for (int64_t j = 0; j < m; ++j) {
            w[j] += step[j] * p[j];
            r[j] -= step[j] * q[j];
            const double square = static_cast<double>(r[j]) * r[j];
            squares[j] += square;
            preconditioned[j] += scale * square;
        }
    }
}

// Rows [begin, end) of P = P turn + inverse R.
inline void turn_direction(float* P, const float* R, const float* turn, const float* inverse, int64_t begin, int64_t end,
                           int64_t m) {
    for (int64_t i = begin; i < end; ++i) {
        float* p = P + i * m;
        const float* r = R + i * m;
        for (int64_t j = 0; j < m; ++j) p[j] = p[j] * turn[j] + inverse[i] * r[j];
    }
}

}  // namespace labelsense
