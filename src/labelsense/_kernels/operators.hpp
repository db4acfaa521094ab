// The sensing matrix A as the decoders see it. All operators offer the same few products, so that every
// algorithm is written once, as a template over them:
//
//   m, d, width         rows; columns; length of a correlation buffer (>= d: the rest is scratch)
//   unit                a power of two: what is stored is A over this number, so that columns have ordinary lengths
//   take(H, n, Q, s)    Q (n, s) = rows of measurements in the coordinates of the operator, where residuals are formed
//   norm(q)             the Euclidean norm of the measurements that q stands for
//   correlate(q, c)     c = A' h
//   column(j, a)        a = column j, in the same coordinates
//   gram(i, j)          a_i' a_j
//   cheap_gram(t)       whether subtracting t Gram columns is cheaper than one correlate
//   subtract_gram(...)  c = c0 - A' A_J y
//   times_column(j, q)  a_j' h
//   inverse_norms       1 / ||a_j||, or nullptr where every column has norm 1
//   DEPENDENT           the share of ||a_j||^2 below which what is new in a column is rounding; see active.hpp
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "fwht.hpp"

namespace labelsense {

inline double norm(const float* h, int64_t m) {
    double part[4] = {};  // independent sums: one would wait for itself at every step
    int64_t i = 0;
    for (; i + 4 <= m; i += 4)
        for (int l = 0; l < 4; ++l) part[l] += static_cast<double>(h[i + l]) * h[i + l];
    for (; i < m; ++i) part[0] += static_cast<double>(h[i]) * h[i];
    return std::sqrt((part[0] + part[1]) + (part[2] + part[3]));
}

inline void copy_rows(const float* H, int64_t n, int64_t m, float* Q, int64_t stride) {
    for (int64_t i = 0; i < n; ++i) std::copy(H + i * m, H + (i + 1) * m, Q + i * stride);
}

// m rows of the Hadamard matrix of order D, over +-1/sqrt(m). Nothing of size m x d is stored: A' r is one
// transform, and a_i' a_j = g[i XOR j] / m with one vector g of D whole numbers, which floats hold exactly.
class Hadamard {
  public:
    int64_t m, d, width;
    double unit = 1;
    const float* inverse_norms = nullptr;
    static constexpr double DEPENDENT = 1e-9;

    Hadamard(const int64_t* rows, int64_t n_rows, int64_t order, int64_t n_columns)
        : m(n_rows), d(n_columns), width(round_up(order, BLOCK)), rows_(rows, rows + n_rows),
          scale_(1.0f / std::sqrt(static_cast<float>(n_rows))), share_(1.0 / static_cast<double>(n_rows)),
          first_(width / BLOCK + 1), words_((m + 63) / 64), gram_(make_floats(width)) {
        for (int64_t i : rows_) {
            ++first_[i / BLOCK + 1];
            gram_[i] = 1;
        }
        for (size_t b = 1; b < first_.size(); ++b) first_[b] += first_[b - 1];
        fwht(gram_.get(), width);
        sort_rows_by_octet();
        while ((int64_t{1} << bits_) < width) ++bits_;
        planes_.resize(bits_ * words_);
        for (int64_t r = 0; r < m; ++r)
            for (int64_t b = 0; b < bits_; ++b)
                if (rows_[r] >> b & 1) planes_[b * words_ + r / 64] |= uint64_t{1} << (r % 64);
    }

    void take(const float* H, int64_t n, float* Q, int64_t stride) const { copy_rows(H, n, m, Q, stride); }
    double norm(const float* q) const { return labelsense::norm(q, m); }

    double gram(int64_t i, int64_t j) const { return gram_[i ^ j] * share_; }

    // c = A' r. Only m of the D inputs are not zero, so the first stages are cheapest as sums of Walsh rows: of all
    // six stages of a block of 64 where it holds few of them, else of the three within a register.
    void correlate(const float* r, float* c) const {
        if (m <= 3 * (width / BLOCK)) {
            fwht(c, width, [&](float* p, int64_t b) { sum_of_walsh_rows(r, p, b); });
        } else {
            // The first row of each octet is stored, the others added, all firsts before all others: what is read
            // was not written just before.
            for (int32_t place : empty_octets_) store(c + place, f8{});
            for (const Entry& e : firsts_) store(c + e.place, load(walsh_[e.lane]) * r[e.row]);
            for (const Entry& e : others_) store(c + e.place, load(c + e.place) + load(walsh_[e.lane]) * r[e.row]);
            fwht(c, width, [](float* p, int64_t) { walsh::combine<8>(p, LANES); });
        }
    }

    void column(int64_t j, float* a) const {
        f8 plus = f8{} + scale_;
        each_octet(j, [&](int64_t r, i8 minus) { store(a + r, flip_signs(plus, minus)); });
        for (int64_t r = m; r < round_up(m, LANES); ++r) a[r] = 0;
    }

    // a_j' x for x padded with zeros to whole octets
    double times_column(int64_t j, const float* x) const {
        double part[LANES] = {};
        each_octet(j, [&](int64_t r, i8 minus) {
            f8 y = flip_signs(load(x + r), minus);
            for (int l = 0; l < LANES; ++l) part[l] += static_cast<double>(y[l]);
        });
        double total = 0;
        for (double x : part) total += x;
        return total * scale_;
    }

    // Up to five shuffled Gram vectors cost less than a transform (measured).
    bool cheap_gram(int64_t t) const { return 1 <= t && t <= 5; }

    void subtract_gram(const float* c0, const int64_t* J, const double* y, int64_t t, float* c) const {
        switch (t) {
            case 1: return subtract_gram<1>(c0, J, y, c);
            case 2: return subtract_gram<2>(c0, J, y, c);
            case 3: return subtract_gram<3>(c0, J, y, c);
            case 4: return subtract_gram<4>(c0, J, y, c);
            default: return subtract_gram<5>(c0, J, y, c);
        }
    }

  private:
    struct Entry {
        int32_t row, place, lane;  // r[row] belongs into lane `lane` of the octet that starts at `place`
    };

    // Calls f(r, minus) for each octet of rows, with the sign bits of column j as a mask for `flip_signs`: they are the
    // XOR of the bit planes of the row numbers.
    template <class F>
    void each_octet(int64_t j, F f) const {
        constexpr i8 bit = {1, 2, 4, 8, 16, 32, 64, 128};
        for (int64_t w = 0; w < words_; ++w) {
            uint64_t signs = 0;
            for (int64_t rest = j; rest; rest &= rest - 1) signs ^= planes_[__builtin_ctzll(rest) * words_ + w];
            int64_t end = std::min<int64_t>(64, round_up(m - 64 * w, LANES));
            for (int64_t l = 0; l < end; l += LANES) {
                i8 byte = i8{} + static_cast<int32_t>(signs >> l & 255);
                f(64 * w + l, ((byte & bit) != 0) & INT32_MIN);
            }
        }
    }

    void sort_rows_by_octet() {
        for (int i = 0; i < 8; ++i)
            for (int j = 0; j < 8; ++j) walsh_[i][j] = walsh::WALSH8[i][j] * scale_;
        std::vector<int32_t> held(width / LANES);
        std::vector<std::pair<int32_t, Entry>> others;
        for (int64_t i = 0; i < m; ++i) {
            int64_t octet = rows_[i] / LANES;
            Entry entry{static_cast<int32_t>(i), static_cast<int32_t>(octet * LANES), static_cast<int32_t>(rows_[i] % LANES)};
            if (held[octet] == 0) firsts_.push_back(entry);
            else others.emplace_back(held[octet], entry);
            ++held[octet];
        }
        std::stable_sort(others.begin(), others.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        for (const auto& [rank, entry] : others) others_.push_back(entry);
        for (size_t o = 0; o < held.size(); ++o)
            if (held[o] == 0) empty_octets_.push_back(static_cast<int32_t>(o * LANES));
    }

    static f8 permute(f8 x, i8 lanes) {
#if defined(__clang__)
        f8 y;
        for (int l = 0; l < LANES; ++l) y[l] = x[lanes[l]];
        return y;
#else
        return __builtin_shuffle(x, lanes);
#endif
    }

    void sum_of_walsh_rows(const float* r, float* p, int64_t b) const {
        f8 x[8] = {};
        for (int64_t i = first_[b]; i < first_[b + 1]; ++i) {
            int64_t at = rows_[i] % BLOCK;
            f8 low = load(walsh::WALSH8[at % 8]) * (r[i] * scale_);
#pragma GCC unroll 8
            for (int q = 0; q < 8; ++q) x[q] += low * walsh::WALSH8[at / 8][q];
        }
#pragma GCC unroll 8
        for (int q = 0; q < 8; ++q) store(p + 8 * q, x[q]);
    }

    template <int t>
    void subtract_gram(const float* c0, const int64_t* J, const double* y, float* c) const {
        f8 weight[t];
        i8 lanes[t];
        int64_t high[t];
        for (int i = 0; i < t; ++i) {
            weight[i] = f8{} + static_cast<float>(y[i] / static_cast<double>(m));
            lanes[i] = i8{0, 1, 2, 3, 4, 5, 6, 7} ^ static_cast<int32_t>(J[i] & 7);
            high[i] = J[i] & ~int64_t{7};
        }
        const float* g = gram_.get();
        for (int64_t j = 0; j < width; j += LANES) {
            f8 x = c0 ? load(c0 + j) : f8{};
#pragma GCC unroll 5
            for (int i = 0; i < t; ++i) x -= weight[i] * permute(load(g + (j ^ high[i])), lanes[i]);
            store(c + j, x);
        }
    }

    std::vector<int64_t> rows_;  // sorted
    float scale_;
    double share_;  // 1 / m
    std::vector<int64_t> first_;  // rows_[first_[b]] is the first row number in block b
    std::vector<Entry> firsts_, others_;  // the first row of each octet, and the second, third, ...
    std::vector<int32_t> empty_octets_;
    alignas(32) float walsh_[8][8];  // WALSH8 / sqrt(m)
    int64_t words_, bits_ = 0;
    std::vector<uint64_t> planes_;
    Floats gram_;
};

// Any stored matrix, kept as its columns (d, m); with its Gram matrix (d, d) where that was worth computing.
class Dense {
  public:
    int64_t m, d, width;
    double unit;
    const float* inverse_norms;
    static constexpr double DEPENDENT = 1e-9;

    Dense(const float* columns, int64_t n_rows, int64_t n_columns, const float* gram, const float* inverse, double unit_)
        : m(n_rows), d(n_columns), width(round_up(n_columns, LANES)), unit(unit_), inverse_norms(inverse),
          columns_(columns), gram_(gram) {}

    void take(const float* H, int64_t n, float* Q, int64_t stride) const { copy_rows(H, n, m, Q, stride); }
    double norm(const float* q) const { return labelsense::norm(q, m); }

    double gram(int64_t i, int64_t j) const { return dot(columns_ + i * m, columns_ + j * m); }

    void correlate(const float* r, float* c) const {
        int64_t whole = m / LANES * LANES;
        for (int64_t j = 0; j < d; ++j) {
            const float* a = columns_ + j * m;
            f8 sum = {};
            for (int64_t i = 0; i < whole; i += LANES) sum += load(a + i) * load(r + i);
            float total = 0;
            for (int64_t i = whole; i < m; ++i) total += a[i] * r[i];
            for (int l = 0; l < LANES; ++l) total += sum[l];
            c[j] = total;
        }
    }

    double times_column(int64_t j, const float* x) const { return dot(columns_ + j * m, x); }

    void column(int64_t j, float* a) const {
        std::memcpy(a, columns_ + j * m, m * sizeof(float));
        for (int64_t r = m; r < round_up(m, LANES); ++r) a[r] = 0;
    }

    bool cheap_gram(int64_t) const { return gram_ != nullptr; }

    void subtract_gram(const float* c0, const int64_t* J, const double* y, int64_t t, float* c) const {
        for (int64_t j = 0; j < d; ++j) c[j] = c0 ? c0[j] : 0.0f;
        for (int64_t i = 0; i < t; ++i) {
            const float* g = gram_ + J[i] * d;
            float weight = static_cast<float>(y[i]);
            for (int64_t j = 0; j < d; ++j) c[j] -= weight * g[j];
        }
    }

  private:
    double dot(const float* a, const float* b) const {
        double part[4] = {};
        int64_t r = 0;
        for (; r + 4 <= m; r += 4)
            for (int l = 0; l < 4; ++l) part[l] += static_cast<double>(a[r + l]) * b[r + l];
        for (; r < m; ++r) part[0] += static_cast<double>(a[r]) * b[r];
        return (part[0] + part[1]) + (part[2] + part[3]);
    }

    const float* columns_;
    const float* gram_;
};

// T A for Hadamard rows A and a lower triangular T (m, m). Measurements h are taken as q = T' h, and columns as T' T a_j,
// which are stored: then (T A)' h = A' q is one transform, and no step of a decoder multiplies by T.
class Whitened {
  public:
    int64_t m, d, width;
    double unit = 1;
    const float* inverse_norms;
    static constexpr double DEPENDENT = 1e-6;  // T' T a_j is rounded to floats

    Whitened(const Hadamard& rows, const float* whitening, const float* inverse_whitening, const float* columns,
             const float* inverse)
        : m(rows.m), d(rows.d), width(rows.width), inverse_norms(inverse), rows_(rows), whitening_(whitening),
          inverse_whitening_(inverse_whitening), columns_(columns), stride_(round_up(rows.m, 2 * LANES)) {}

    void take(const float* H, int64_t n, float* Q, int64_t stride) const { times(whitening_, H, n, Q, stride); }

    double norm(const float* q) const {
        Floats h = make_floats(stride_);
        times(inverse_whitening_, q, 1, h.get(), stride_);
        return labelsense::norm(h.get(), m);
    }

    void correlate(const float* q, float* c) const { rows_.correlate(q, c); }

    double times_column(int64_t j, const float* q) const { return rows_.times_column(j, q); }

    void column(int64_t j, float* a) const { std::memcpy(a, columns_ + j * stride_, stride_ * sizeof(float)); }

    double gram(int64_t i, int64_t j) const { return rows_.times_column(i, columns_ + j * stride_); }

    bool cheap_gram(int64_t) const { return false; }

    void subtract_gram(const float*, const int64_t*, const double*, int64_t, float*) const {}  // never cheap, never called

  private:
    // Y = X S for X (n, m) and a lower triangular S (m, m), whose rows are padded with zeros: sixteen columns of S, which
    // stay in cache, by four rows of X at a time.
    void times(const float* S, const float* X, int64_t n, float* Y, int64_t stride) const {
        for (int64_t j = 0; j < stride_; j += 2 * LANES) {
            int64_t i = 0;
            for (; i + 4 <= n; i += 4) times<4>(S, X + i * m, j, Y + i * stride, stride);
            for (; i < n; ++i) times<1>(S, X + i * m, j, Y + i * stride, stride);
        }
    }

    template <int rows>
    void times(const float* S, const float* X, int64_t j, float* Y, int64_t stride) const {
        f8 y[rows][2] = {};
        for (int64_t r = j; r < m; ++r) {
            f8 left = load(S + r * stride_ + j), right = load(S + r * stride_ + j + LANES);
#pragma GCC unroll 4
            for (int i = 0; i < rows; ++i) {
                y[i][0] += left * X[i * m + r];
                y[i][1] += right * X[i * m + r];
            }
        }
#pragma GCC unroll 4
        for (int i = 0; i < rows; ++i) {
            store(Y + i * stride + j, y[i][0]);
            store(Y + i * stride + j + LANES, y[i][1]);
        }
    }

    const Hadamard& rows_;
    const float *whitening_, *inverse_whitening_, *columns_;
    int64_t stride_;
};

// Some columns of A, as if there were no others. What a step costs does not depend on how many others there are.
template <class Op>
class Among {
  public:
    int64_t m, d, width;
    double unit;
    const float* inverse_norms;
    static constexpr double DEPENDENT = Op::DEPENDENT;

    Among(const Op& op, const int32_t* labels, int64_t n_labels)
        : m(op.m), d(n_labels), width(round_up(n_labels, LANES)), unit(op.unit), op_(op), labels_(labels) {
        if (op.inverse_norms) {
            inverse_.resize(width);
            for (int64_t i = 0; i < d; ++i) inverse_[i] = op.inverse_norms[labels[i]];
        }
        inverse_norms = op.inverse_norms ? inverse_.data() : nullptr;
    }

    void take(const float* H, int64_t n, float* Q, int64_t stride) const { op_.take(H, n, Q, stride); }
    double norm(const float* q) const { return op_.norm(q); }
    double gram(int64_t i, int64_t j) const { return op_.gram(labels_[i], labels_[j]); }
    void column(int64_t i, float* a) const { op_.column(labels_[i], a); }
    double times_column(int64_t i, const float* q) const { return op_.times_column(labels_[i], q); }
    bool cheap_gram(int64_t) const { return op_.cheap_gram(1); }

    void correlate(const float* q, float* c) const {
        for (int64_t i = 0; i < d; ++i) c[i] = static_cast<float>(times_column(i, q));
    }

    void subtract_gram(const float* c0, const int64_t* J, const double* y, int64_t t, float* c) const {
        for (int64_t i = 0; i < d; ++i) {
            double x = c0 ? c0[i] : 0.0f;
            for (int64_t k = 0; k < t; ++k) x -= y[k] * gram(J[k], i);
            c[i] = static_cast<float>(x);
        }
    }

  private:
    const Op& op_;
    const int32_t* labels_;
    std::vector<float> inverse_;
};

}  // namespace labelsense
