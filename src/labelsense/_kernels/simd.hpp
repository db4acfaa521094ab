// Eight floats at a time, without intrinsics: the compiler turns `f8` into one AVX register or two SSE ones,
// and the result is the same to the bit either way.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace labelsense {

typedef float f8 __attribute__((vector_size(32)));
typedef int32_t i8 __attribute__((vector_size(32)));
typedef double d4 __attribute__((vector_size(32)));
typedef int64_t l4 __attribute__((vector_size(32)));

constexpr int64_t LANES = 8;

inline int64_t round_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

inline f8 load(const float* p) {
    f8 x;
    std::memcpy(&x, p, sizeof x);
    return x;
}

inline void store(float* p, f8 x) { std::memcpy(p, &x, sizeof x); }

inline f8 flip_signs(f8 x, i8 mask) { return (f8)((i8)x ^ mask); }

inline f8 absolute(f8 x) { return (f8)((i8)x & 0x7fffffff); }

// The larger of two lanes; a where b is not a number. One instruction, which GCC forgets where it has the comparison.
inline f8 larger(f8 a, f8 b) {
#ifdef __AVX__
    return __builtin_ia32_maxps256(b, a);
#else
    return b > a ? b : a;
#endif
}

// The largest and the least of eight lanes, by halves: a loop over lanes would mispredict its branches.
inline float largest_lane(f8 x) {
    x = larger(x, __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3));
    x = larger(x, __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5));
    x = larger(x, __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6));
    return x[0];
}

inline i8 smaller(i8 a, i8 b) { return a < b ? a : b; }

inline int32_t least_lane(i8 x) {
    x = smaller(x, __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3));
    x = smaller(x, __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5));
    x = smaller(x, __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6));
    return x[0];
}

inline int32_t total_of_lanes(i8 x) {
    x += __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3);
    x += __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5);
    x += __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6);
    return x[0];
}

// The place of the lowest bit that is set in each lane; one is.
inline i8 lowest_bit(i8 x) { return ((i8)__builtin_convertvector(x & -x, f8) >> 23 & 0xff) - 127; }

// e^x: 2^n e^r with |r| at most ln(2) / 2, and e^r by its series, which is exact to the last bit but one. Beyond e^700 it
// is e^700.
inline d4 exponential(d4 x) {
    x = x > 700.0 ? d4{} + 700.0 : x;
    x = x < -700.0 ? d4{} - 700.0 : x;
    const d4 shifted = x * 1.4426950408889634 + 0x1.8p52;  // n is in the last bits
    const d4 n = shifted - 0x1.8p52, r = (x - n * 0x1.62e42fefa3800p-1) - n * 0x1.ef35793c76730p-45;
    d4 sum = {};
    for (int k = 13; k > 0; --k) sum = (sum + 1) * (r * (1.0 / k));
    return (d4)((l4)(sum + 1) + ((l4)shifted << 52));
}

// Zeroed floats on a cache line boundary, padded to whole lines.
struct FreeDeleter {
    void operator()(float* p) const { std::free(p); }
};
using Floats = std::unique_ptr<float[], FreeDeleter>;

inline Floats make_floats(int64_t n) {
    size_t bytes = static_cast<size_t>(round_up(n > 0 ? n : 1, 16)) * sizeof(float);
    auto* p = static_cast<float*>(std::aligned_alloc(64, bytes));
    if (!p) throw std::bad_alloc();
    std::memset(p, 0, bytes);
    return Floats(p);
}

}  // namespace labelsense
