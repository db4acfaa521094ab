// Where a correlation buffer is largest. Ties go to the lowest index.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "simd.hpp"

namespace labelsense {

constexpr int64_t SEARCH_BLOCK = 512;
constexpr int64_t TOP_BLOCK = 128;
constexpr int64_t CHUNK = 64;

// The largest |c_j| w_j over [begin, end); w may be null.
inline float max_abs(const float* c, const float* w, int64_t begin, int64_t end) {
    f8 best[4] = {};
    int64_t j = begin;
    for (; j + 4 * LANES <= end; j += 4 * LANES)
#pragma GCC unroll 4
        for (int q = 0; q < 4; ++q) {
            f8 x = absolute(load(c + j + q * LANES));
            if (w) x *= load(w + j + q * LANES);
            best[q] = larger(best[q], x);
        }
    float result = largest_lane(larger(larger(best[0], best[1]), larger(best[2], best[3])));
    for (; j < end; ++j) result = std::max(result, std::fabs(c[j]) * (w ? w[j] : 1.0f));
    return result;
}

// The first of CHUNK columns with |c_j| w_j of this value; CHUNK if there is none.
inline int64_t first_equal(const float* c, const float* w, float value) {
    i8 here = {0, 1, 2, 3, 4, 5, 6, 7};
    i8 first = i8{} + static_cast<int32_t>(CHUNK);
#pragma GCC unroll 8
    for (int64_t j = 0; j < CHUNK; j += LANES) {
        f8 x = absolute(load(c + j));
        if (w) x *= load(w + j);
        i8 place = x == value ? here + static_cast<int32_t>(j) : first;
        first = place < first ? place : first;
    }
    int32_t lowest = first[0];
    for (int l = 1; l < LANES; ++l) lowest = std::min(lowest, first[l]);
    return lowest;
}

// The lowest j < d with the largest |c_j| w_j, and that value.
inline int64_t argmax_abs(const float* c, const float* w, int64_t d, float* value) {
    float best = -1;
    int64_t block = 0;
    for (int64_t b = 0; b < d; b += SEARCH_BLOCK) {
        float here = max_abs(c, w, b, std::min(b + SEARCH_BLOCK, d));
        if (here > best) best = here, block = b;
    }
    *value = best;
    int64_t j = block;
    for (; j + CHUNK <= d; j += CHUNK) {
        int64_t found = first_equal(c + j, w ? w + j : nullptr, best);
        if (found < CHUNK) return j + found;
    }
    while (j < d - 1 && std::fabs(c[j]) * (w ? w[j] : 1.0f) != best) ++j;
    return j;
}

// The k columns with the largest |c_j|, largest first.
inline void top_abs(const float* c, int64_t d, int64_t k, std::vector<int64_t>& top) {
    auto before = [c](int64_t i, int64_t j) {
        float x = std::fabs(c[i]), y = std::fabs(c[j]);
        return x > y || (x == y && i < j);
    };
    top.clear();
    k = std::min(k, d);
    if (k == 0) return;
    for (int64_t b = 0; b < d; b += TOP_BLOCK) {
        int64_t end = std::min(b + TOP_BLOCK, d);
        bool full = static_cast<int64_t>(top.size()) == k;
        if (full && max_abs(c, nullptr, b, end) <= std::fabs(c[top.front()])) continue;
        for (int64_t j = b; j < end; ++j) {
            if (static_cast<int64_t>(top.size()) < k) {
                top.push_back(j);
                std::push_heap(top.begin(), top.end(), before);
            } else if (before(j, top.front())) {
                std::pop_heap(top.begin(), top.end(), before);
                top.back() = j;
                std::push_heap(top.begin(), top.end(), before);
            }
        }
    }
    std::sort_heap(top.begin(), top.end(), before);
}

}  // namespace labelsense
