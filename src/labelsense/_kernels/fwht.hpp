// The Walsh-Hadamard transform: x <- W x with W[i][j] = (-1)^popcount(i & j), in D log2 D additions.
//
// The first six stages of a block of 64 stay in eight registers; the others run depth first, eight blocks at a
// time, so that each level works on data that the level below has just left in cache.
#pragma once

#include "simd.hpp"

namespace labelsense {

constexpr int64_t BLOCK = 64;  // also the smallest order: a smaller transform is this one, restricted

namespace walsh {

// WALSH8[i][j] = (-1)^popcount(i & j)
alignas(32) constexpr float WALSH8[8][8] = {
    {1, 1, 1, 1, 1, 1, 1, 1},     {1, -1, 1, -1, 1, -1, 1, -1}, {1, 1, -1, -1, 1, 1, -1, -1}, {1, -1, -1, 1, 1, -1, -1, 1},
    {1, 1, 1, 1, -1, -1, -1, -1}, {1, -1, 1, -1, -1, 1, -1, 1}, {1, 1, -1, -1, -1, -1, 1, 1}, {1, -1, -1, 1, -1, 1, 1, -1}};

template <int... lanes>
inline f8 stage(f8 x, i8 minus) {
    return __builtin_shufflevector(x, x, lanes...) + flip_signs(x, minus);
}

inline f8 within_register(f8 x) {
    constexpr int32_t S = INT32_MIN;
    x = stage<1, 0, 3, 2, 5, 4, 7, 6>(x, i8{0, S, 0, S, 0, S, 0, S});
    x = stage<2, 3, 0, 1, 6, 7, 4, 5>(x, i8{0, 0, S, S, 0, 0, S, S});
    return stage<4, 5, 6, 7, 0, 1, 2, 3>(x, i8{0, 0, 0, 0, S, S, S, S});
}

// The pragmas matter: without them GCC keeps x in memory, at twice the time.
template <int radix>
inline void across_registers(f8* x) {
#pragma GCC unroll 16
    for (int half = 1; half < radix; half *= 2)
#pragma GCC unroll 16
        for (int i = 0; i < radix; ++i)
            if (!(i & half)) {
                f8 sum = x[i] + x[i + half];
                x[i + half] = x[i] - x[i + half];
                x[i] = sum;
            }
}

template <int radix>
inline void combine(float* p, int64_t stride) {
    for (int64_t j = 0; j < stride; j += LANES) {
        f8 x[radix];
#pragma GCC unroll 16
        for (int i = 0; i < radix; ++i) x[i] = load(p + i * stride + j);
        across_registers<radix>(x);
#pragma GCC unroll 16
        for (int i = 0; i < radix; ++i) store(p + i * stride + j, x[i]);
    }
}

inline void block_in_place(float* p) {
    f8 x[8];
#pragma GCC unroll 16
    for (int i = 0; i < 8; ++i) x[i] = within_register(load(p + 8 * i));
    across_registers<8>(x);
#pragma GCC unroll 16
    for (int i = 0; i < 8; ++i) store(p + 8 * i, x[i]);
}

}  // namespace walsh

// `leaf(p, b)` leaves the transform of block b of the input in p[0..63]. Leaves have a loop of their own, and the recursion
// is not inlined: else what the compiler makes of it depends on who calls it, up to a quarter of the time.
template <class Leaf>
[[gnu::noinline]] void fwht(float* p, int64_t order, const Leaf& leaf, int64_t block = 0) {
    if (order == BLOCK) return leaf(p, block);
    int64_t radix = order == 16 * BLOCK ? 16 : order >= 8 * BLOCK ? 8 : order / BLOCK;
    int64_t part = order / radix;
    if (part == BLOCK)
        for (int64_t i = 0; i < radix; ++i) leaf(p + i * BLOCK, block + i);
    else
        for (int64_t i = 0; i < radix; ++i) fwht(p + i * part, part, leaf, block + i * (part / BLOCK));
    if (radix == 16) walsh::combine<16>(p, part);
    else if (radix == 8) walsh::combine<8>(p, part);
    else if (radix == 4) walsh::combine<4>(p, part);
    else walsh::combine<2>(p, part);
}

inline void fwht(float* p, int64_t order) {
    fwht(p, order, [](float* q, int64_t) { walsh::block_in_place(q); });
}

}  // namespace labelsense
