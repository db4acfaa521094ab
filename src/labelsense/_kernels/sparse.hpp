// Products of sparse feature matrices. Sums are in double where they are long, results in float or double.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "simd.hpp"

namespace labelsense {

struct SparseRows {  // CSR, column numbers ascending within a row
    const int64_t* indptr;
    const int32_t* indices;
    const float* data;
};

// As many strips of `lanes` columns as fit of one row of C = X B, each in registers; returns the first column that is left.
template <int lanes>
int64_t strips(const SparseRows& X, int64_t i, const float* B, int64_t m, int64_t first, float* c) {
    constexpr int STRIP = lanes / LANES;
    for (; first + lanes <= m; first += lanes) {
        f8 sum[STRIP] = {};
        for (int64_t e = X.indptr[i]; e < X.indptr[i + 1]; ++e) {
            const float* b = B + X.indices[e] * m + first;
#pragma GCC unroll 8
            for (int q = 0; q < STRIP; ++q) sum[q] += load(b + q * LANES) * X.data[e];
        }
#pragma GCC unroll 8
        for (int q = 0; q < STRIP; ++q) store(c + first + q * LANES, sum[q]);
    }
    return first;
}

// C = X B for the rows [begin, end) of X and dense B (p, m).
inline void times_dense(const SparseRows& X, int64_t begin, int64_t end, const float* B, int64_t m, float* C) {
    for (int64_t i = begin; i < end; ++i) {
        float* c = C + i * m;
        int64_t first = strips<64>(X, i, B, m, 0, c);
        first = strips<32>(X, i, B, m, first, c);
        first = strips<8>(X, i, B, m, first, c);
        for (int64_t j = first; j < m; ++j) {
            float sum = 0;
            for (int64_t e = X.indptr[i]; e < X.indptr[i + 1]; ++e) sum += X.data[e] * B[X.indices[e] * m + j];
            c[j] = sum;
        }
    }
}

// Sets `kept` for the k entries of each of n rows that are largest in magnitude, the first ones of equal ones.
inline void mark_strongest(const SparseRows& X, int64_t n, int64_t k, uint8_t* kept) {
    std::vector<float> size;
    for (int64_t i = 0; i < n; ++i) {
        const int64_t begin = X.indptr[i], end = X.indptr[i + 1];
        std::fill(kept + begin, kept + end, uint8_t{1});
        if (end - begin <= k) continue;
        size.resize(end - begin);
        for (int64_t e = begin; e < end; ++e) size[e - begin] = std::fabs(X.data[e]);
        std::nth_element(size.begin(), size.begin() + (k - 1), size.end(), std::greater<float>());
        const float least = size[k - 1];
        int64_t ties = k;  // places that are left for entries of this very size
        for (int64_t e = begin; e < end; ++e) ties -= std::fabs(X.data[e]) > least;
        for (int64_t e = begin; e < end; ++e) {
            const float x = std::fabs(X.data[e]);
            kept[e] = x > least || (x == least && ties-- > 0);
        }
    }
}

// x_i'w, as the sum of four sums in double, so that none waits for another.
template <class Float>
double sparse_dot(const SparseRows& X, int64_t i, const Float* w) {
    const int32_t* at = X.indices;
    const float* x = X.data;
    int64_t e = X.indptr[i];
    const int64_t end = X.indptr[i + 1];
    double first = 0, second = 0, third = 0, fourth = 0;
    for (; e + 4 <= end; e += 4) {
        first += w[at[e]] * x[e];
        second += w[at[e + 1]] * x[e + 1];
        third += w[at[e + 2]] * x[e + 2];
        fourth += w[at[e + 3]] * x[e + 3];
    }
    for (; e < end; ++e) first += w[at[e]] * x[e];
    return (first + second) + (third + fourth);
}

// sums += x_i' B for sparse B (p, m).
inline void add_row(const SparseRows& X, int64_t i, const SparseRows& B, double* sums) {
    for (int64_t e = X.indptr[i]; e < X.indptr[i + 1]; ++e) {
        const double x = X.data[e];
        for (int64_t f = B.indptr[X.indices[e]]; f < B.indptr[X.indices[e] + 1]; ++f) sums[B.indices[f]] += x * B.data[f];
    }
}

// C = X B for the rows [begin, end) of X, sparse B (p, m) and dense C.
inline void times_sparse(const SparseRows& X, int64_t begin, int64_t end, const SparseRows& B, int64_t m, float* C) {
    std::vector<double> sum(m);
    for (int64_t i = begin; i < end; ++i) {
        std::fill(sum.begin(), sum.end(), 0.0);
        add_row(X, i, B, sum.data());
        std::copy(sum.begin(), sum.end(), C + i * m);
    }
}

constexpr int64_t FEATURE_TILE = 2048;  // features whose sums in double stay in the first level of cache

// starts[t][i]: the first entry of row i with a feature of tile t or later. (n_tiles + 1, n)
inline void tile_starts(const SparseRows& X, int64_t n, int64_t n_tiles, int64_t* starts) {
    for (int64_t i = 0; i < n; ++i) {
        int64_t e = X.indptr[i];
        for (int64_t t = 0; t <= n_tiles; ++t) {
            while (e < X.indptr[i + 1] && X.indices[e] < t * FEATURE_TILE) ++e;
            starts[t * n + i] = e;
        }
    }
}

// The lower triangle of X'X, its rows [begin, end): row j is the sum, over the rows of X that have feature j, of the
// part of that row up to j, tile by tile. `rows` and `places` are the columns of X: row numbers, and places in X.data.
template <class Number>
void gram(const SparseRows& X, const int64_t* column_starts, const int32_t* rows, const int64_t* places,
          const int64_t* starts, int64_t n, int64_t begin, int64_t end, int64_t p, Number* G) {
    std::vector<double> sums(FEATURE_TILE);
    for (int64_t t = 0; t * FEATURE_TILE < end; ++t) {
        const int64_t first = t * FEATURE_TILE;
        const int64_t* from = starts + t * n;
        const int64_t* to = from + n;
        for (int64_t j = std::max(begin, first); j < end; ++j) {
            std::fill(sums.begin(), sums.end(), 0.0);
            double* sum = sums.data() - first;
            for (int64_t e = column_starts[j]; e < column_starts[j + 1]; ++e) {
                const double x = X.data[places[e]];
                const int64_t last = std::min(to[rows[e]], places[e] + 1);
                for (int64_t f = from[rows[e]]; f < last; ++f) sum[X.indices[f]] += x * X.data[f];
            }
            std::copy(sum + first, sum + std::min(first + FEATURE_TILE, j + 1), G + j * p + first);
        }
    }
}

// q_i += the terms of x_i' S x_i with the larger feature in [begin, end), for the lower triangle of a symmetric S (p, p).
inline void quadratic_forms(const SparseRows& X, const int64_t* column_starts, const int32_t* rows, const int64_t* places,
                            int64_t begin, int64_t end, int64_t p, const float* S, double* q) {
    for (int64_t j = begin; j < end; ++j) {
        const float* s = S + j * p;
        for (int64_t e = column_starts[j]; e < column_starts[j + 1]; ++e) {
            double sum = 0;
            for (int64_t f = X.indptr[rows[e]]; f < places[e]; ++f) sum += static_cast<double>(X.data[f]) * s[X.indices[f]];
            const double x = X.data[places[e]];
            q[rows[e]] += x * (2 * sum + x * s[j]);
        }
    }
}

}  // namespace labelsense
