// Where a correlation buffer is largest. Ties go to the lowest index; what is not a number is never the largest.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "simd.hpp"

namespace labelsense {

constexpr int64_t CHUNK = 4 * LANES;

// What is searched: values at j..j+7 as a vector, and at j alone for the last few.
struct Itself {  // c_j
    const float* c;
    f8 vector(int64_t j) const { return load(c + j); }
    float scalar(int64_t j) const { return c[j]; }
};

struct Negative {  // -c_j
    const float* c;
    f8 vector(int64_t j) const { return -load(c + j); }
    float scalar(int64_t j) const { return -c[j]; }
};

struct Absolute {  // |c_j|
    const float* c;
    f8 vector(int64_t j) const { return absolute(load(c + j)); }
    float scalar(int64_t j) const { return std::fabs(c[j]); }
};

struct AbsoluteWeighted {  // |c_j| w_j
    const float *c, *w;
    f8 vector(int64_t j) const { return absolute(load(c + j)) * load(w + j); }
    float scalar(int64_t j) const { return std::fabs(c[j]) * w[j]; }
};

struct Positive {  // c_j, or 0 if that is more
    const float* c;
    f8 vector(int64_t j) const { return larger(load(c + j), f8{}); }
    float scalar(int64_t j) const { return std::max(c[j], 0.0f); }
};

struct PositiveWeighted {
    const float *c, *w;
    f8 vector(int64_t j) const { return larger(load(c + j), f8{}) * load(w + j); }
    float scalar(int64_t j) const { return std::max(c[j], 0.0f) * w[j]; }
};

struct AbsoluteMoved {  // |c_j + a_j t|
    const float *c, *a;
    float t;
    f8 vector(int64_t j) const { return absolute(load(c + j) + load(a + j) * t); }
    float scalar(int64_t j) const { return std::fabs(c[j] + a[j] * t); }
};

// Where in the chunk from `start` the value first occurs; it does.
template <class Values>
int64_t first_equal(const Values& values, int64_t start, float value) {
    i8 here = {0, 1, 2, 3, 4, 5, 6, 7};
    i8 first = i8{} + static_cast<int32_t>(CHUNK);
#pragma GCC unroll 4
    for (int64_t j = CHUNK - LANES; j >= 0; j -= LANES)
        first = values.vector(start + j) == value ? here + static_cast<int32_t>(j) : first;
    return least_lane(first);
}

template <class Values>
float largest(const Values& values, int64_t begin, int64_t end) {
    const f8 nothing = f8{} - INFINITY;
    f8 best[4] = {nothing, nothing, nothing, nothing};
    int64_t j = begin;
    for (; j + 4 * LANES <= end; j += 4 * LANES)
#pragma GCC unroll 4
        for (int q = 0; q < 4; ++q) best[q] = larger(best[q], values.vector(j + q * LANES));
    float result = largest_lane(larger(larger(best[0], best[1]), larger(best[2], best[3])));
    for (; j < end; ++j) result = std::max(result, values.scalar(j));
    return result;
}

// The lowest j < d with the largest value, and that value; both -1 where there is no number. Values are not negative. One
// pass remembers, lane by lane, the largest value and the first chunk that has it; then the place is looked up in one chunk.
template <class Values>
int64_t argmax(const Values& values, int64_t d, float* value) {
    const int64_t whole = d / CHUNK * CHUNK;
    f8 best = f8{} - 1.0f;
    i8 where = {};
    for (int64_t j = 0; j < whole; j += CHUNK) {
        f8 x = larger(larger(values.vector(j), values.vector(j + LANES)),
                      larger(values.vector(j + 2 * LANES), values.vector(j + 3 * LANES)));
        where = x > best ? i8{} + static_cast<int32_t>(j / CHUNK) : where;
        best = larger(best, x);
    }
    float top = largest_lane(best);
    int64_t chunk = least_lane(best == top ? where : i8{} + INT32_MAX);
    int64_t place = -1;
    for (int64_t j = whole; j < d; ++j)
        if (values.scalar(j) > top) top = values.scalar(j), place = j;
    *value = top;
    if (place >= 0 || top < 0) return place;
    return chunk * CHUNK + first_equal(values, chunk * CHUNK, top);
}

// The column most correlated with the residual: the largest |c_j| / ||a_j||; w null stands for unit columns.
inline int64_t most_correlated(const float* c, const float* w, int64_t d, float* value) {
    return w ? argmax(AbsoluteWeighted{c, w}, d, value) : argmax(Absolute{c}, d, value);
}

// The same among positive correlations; the value is 0 where there is none.
inline int64_t most_positive(const float* c, const float* w, int64_t d, float* value) {
    return w ? argmax(PositiveWeighted{c, w}, d, value) : argmax(Positive{c}, d, value);
}

// The k largest of the values that are offered, ties to the lowest place. What is not a number counts as less than any.
template <class Value>
class Largest {
  public:
    struct Entry {
        Value value;
        int64_t place;
    };

    explicit Largest(int64_t k) : k_(k) { kept_.reserve(k); }

    // A smaller value is not among them, nor is an equal one at a later place than any so far.
    Value bar() const { return full() ? kept_.front().value : -std::numeric_limits<Value>::infinity(); }

    void offer(Value value, int64_t place) {
        const Entry entry{value == value ? value : -std::numeric_limits<Value>::infinity(), place};
        if (!full()) {
            kept_.push_back(entry);
            if (full()) std::make_heap(kept_.begin(), kept_.end(), before);
        } else if (before(entry, kept_.front())) {
            replace_least(entry);
        }
    }

    // The largest first. Nothing can be offered afterwards.
    const std::vector<Entry>& sorted() {
        std::sort(kept_.begin(), kept_.end(), before);
        return kept_;
    }

    void clear() { kept_.clear(); }

  private:
    static bool before(const Entry& a, const Entry& b) {
        return a.value > b.value || (a.value == b.value && a.place < b.place);
    }

    bool full() const { return static_cast<int64_t>(kept_.size()) == k_; }

    // Each entry of the heap comes before its parent, so the first one is the least.
    void replace_least(const Entry& entry) {
        int64_t at = 0;
        for (int64_t child = 1; child < k_; child = 2 * at + 1) {
            if (child + 1 < k_ && before(kept_[child], kept_[child + 1])) ++child;
            if (before(kept_[child], entry)) break;
            kept_[at] = kept_[child];
            at = child;
        }
        kept_[at] = entry;
    }

    int64_t k_;
    std::vector<Entry> kept_;  // a heap, if there are k
};

// The k places with the largest values, largest first, ties to the lowest.
template <class Values>
void top_places(const Values& values, int64_t d, int64_t k, std::vector<int64_t>& top) {
    top.clear();
    k = std::min(k, d);
    if (k == 0) return;
    Largest<float> best(k);
    for (int64_t j = 0; j < k; ++j) best.offer(values.scalar(j), j);
    for (int64_t b = k; b < d; b += CHUNK) {
        const int64_t end = std::min(b + CHUNK, d);
        if (!(largest(values, b, end) > best.bar())) continue;
        for (int64_t j = b; j < end; ++j)
            if (values.scalar(j) > best.bar()) best.offer(values.scalar(j), j);
    }
    for (const auto& entry : best.sorted()) top.push_back(entry.place);
}

inline int64_t count_above(const float* x, int64_t n, float bar) {
    i8 above = {};
    int64_t j = 0;
    for (; j + LANES <= n; j += LANES) above -= load(x + j) > bar;
    int64_t count = total_of_lanes(above);
    for (; j < n; ++j) count += x[j] > bar;
    return count;
}

// What divides the k largest of n finite values from the others: at least k and at most `most` are above `low`, fewer than k
// above `high`, or these are next to each other. Found by halving: a dozen counts take less time than to order the values.
struct Division {
    float low, high;
};

inline Division divide(const float* x, int64_t n, int64_t k, int64_t most) {
    float high = largest(Itself{x}, 0, n), low = std::nextafter(-largest(Negative{x}, 0, n), -INFINITY);
    for (float middle = low; (middle = low + (high - low) / 2) > low && middle < high;) {
        const int64_t above = count_above(x, n, middle);
        (above < k ? high : low) = middle;
        if (above >= k && above <= most) break;
    }
    return {low, high};
}

// The k places with the largest of d finite values, ascending; ties go to the lowest.
class LargestPlaces {
  public:
    const std::vector<int32_t>& find(const float* x, int64_t d, int64_t k) {
        places_.resize(d);
        if (k >= d) {
            std::iota(places_.begin(), places_.end(), 0);
        } else if (d < PARTS * LANES * k) {
            take(x, d, k, [](int64_t j) { return static_cast<int32_t>(j); });
        } else {
            const int64_t n = collect(x, d, bar_below(x, d, k));
            values_.resize(n);
            for (int64_t i = 0; i < n; ++i) values_[i] = x[places_[i]];
            take(values_.data(), n, k, [this](int64_t i) { return places_[i]; });
        }
        return places_;
    }

  private:
    static constexpr int64_t PARTS = 4;  // vectors for each of the k largest, from which on to look at parts first pays

    // A value that k of them are above, and few more: it divides the maxima of several times k parts.
    float bar_below(const float* x, int64_t d, int64_t k) {
        const int64_t vectors = d / LANES, part = vectors / k;
        maxima_.clear();
        for (int64_t v = 0; v + part <= vectors; v += part) {
            f8 best = load(x + v * LANES);
            for (int64_t w = v + 1; w < v + part; ++w) best = larger(best, load(x + w * LANES));
            for (int lane = 0; lane < LANES; ++lane) maxima_.push_back(best[lane]);
        }
        return divide(maxima_.data(), static_cast<int64_t>(maxima_.size()), k, k + k / 4).low;
    }

    // The places of the values above a bar; returns how many there are.
    int64_t collect(const float* x, int64_t d, float bar) {
        int64_t n = 0;
        for (int64_t b = 0; b < d; b += CHUNK) {
            const int64_t end = std::min(b + CHUNK, d);
            if (!(largest(Itself{x}, b, end) > bar)) continue;
            for (int64_t j = b; j < end; ++j) {
                places_[n] = static_cast<int32_t>(j);
                n += x[j] > bar;
            }
        }
        return n;
    }

    // The k largest of n values: between `low` and `high` is one value at most, and of its places the first are taken.
    template <class Place>
    void take(const float* x, int64_t n, int64_t k, const Place& place) {
        const auto [low, high] = divide(x, n, k, k);
        int64_t room = k - count_above(x, n, high), taken = 0;
        for (int64_t i = 0; i < n; ++i) {
            places_[taken] = place(i);
            const bool is_between = x[i] > low && !(x[i] > high);
            taken += x[i] > high || (is_between && room > 0);
            room -= is_between;
        }
        places_.resize(taken);
    }

    std::vector<int32_t> places_;
    std::vector<float> values_, maxima_;
};

// The k largest entries of each row of a sparse matrix, largest first, in `labels` and `values` (n, k); the rest stays.
inline void top_entries(const int64_t* indptr, const int32_t* indices, const double* data, int64_t n, int64_t k,
                        int64_t* labels, float* values) {
    Largest<double> best(k);
    for (int64_t i = 0; i < n; ++i) {
        best.clear();
        for (int64_t e = indptr[i]; e < indptr[i + 1]; ++e) best.offer(data[e], indices[e]);
        int64_t at = i * k;
        for (const auto& entry : best.sorted()) labels[at] = entry.place, values[at++] = static_cast<float>(entry.value);
    }
}

// The k columns with the largest |c_j|.
inline void top_abs(const float* c, int64_t d, int64_t k, std::vector<int64_t>& top) { top_places(Absolute{c}, d, k, top); }

}  // namespace labelsense
