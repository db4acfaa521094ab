// Rows written as text, "3,17 5:0.2 9:1": labels, then features with their values. In both directions numbers are exact:
// a decimal becomes the float nearest to it, and a float the shortest decimal that gives it back.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "decimals.hpp"

namespace labelsense {

enum Problem { NO_PROBLEM, NOT_A_LABEL, NOT_A_PAIR, NOT_FINITE, LABEL_TOO_LARGE, FEATURE_TOO_LARGE, FEATURE_TWICE };

struct TextRows {  // CSR of the labels and of the features
    std::vector<int32_t> label_starts{0}, labels, feature_starts{0}, features;
    std::vector<float> values;
    int64_t lines = 0;
    int32_t first_feature = std::numeric_limits<int32_t>::max(), n_features = 0, n_labels = 0;  // as far as they occur
    Problem problem = NO_PROBLEM;  // in the line after `lines`
    std::string token;
};

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
inline bool ends_number(char c) { return is_blank(c) || c == '\n' || c == '#'; }

// Appends the digits at `at` to a number, eight at a time, since how many there are cannot be predicted. Every digit is a
// byte of a word; neighbours are joined to pairs, pairs to fours, fours to eight. The number may wrap.
inline const char* read_digits(const char* at, const char* end, uint64_t& number) {
    static constexpr uint64_t TENS[] = {1, 10, 100, 1000, 10'000, 100'000, 1'000'000, 10'000'000, 100'000'000};
    constexpr uint64_t EACH = 0x0101010101010101;
    while (end - at >= 8) {
        uint64_t word;
        std::memcpy(&word, at, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        word = __builtin_bswap64(word);
#endif
        word ^= EACH * '0';
        const uint64_t others = ((word + EACH * (0x80 - 10)) | word) & (EACH * 0x80);  // right up to the first of them
        const int n = others ? __builtin_ctzll(others) / 8 : 8;
        if (n == 0) return at;
        word <<= 64 - 8 * n;
        word = (word * 10 + (word >> 8)) & 0x00ff00ff00ff00ff;
        word = (word * 100 + (word >> 16)) & 0x0000ffff0000ffff;
        word = (word * 10'000 + (word >> 32)) & 0x00000000ffffffff;
        number = number * TENS[n] + word;
        at += n;
        if (n < 8) return at;
    }
    while (is_digit(*at)) number = 10 * number + static_cast<uint64_t>(*at++ - '0');
    return at;
}

// A column number; one of more than ten digits becomes one that no column has.
inline const char* read_number(const char* at, const char* end, int64_t& number) {
    const char* begin = at;
    uint64_t digits = 0;
    at = read_digits(at, end, digits);
    number = at - begin > 10 ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(digits);
    return at == begin ? nullptr : at;
}

// Whether a decimal that no float holds is too large, rather than too small. [begin, end) are its digits and point.
inline bool overflows(const char* begin, const char* end, int64_t exponent) {
    const char* point = std::find(begin, end, '.');
    const char* lead = std::find_if(begin, end, [](char c) { return c != '0' && c != '.'; });
    return point - lead + exponent > 0;
}

// The float nearest to a decimal, as far as it goes; nullptr if there is none, infinity if it is too large.
inline const char* read_float(const char* at, const char* stop, float& value) {
    static constexpr double POWERS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                        1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const bool negative = *at == '-';
    if (*at == '-' || *at == '+') ++at;
    const char* begin = at;
    uint64_t digits = 0;
    at = read_digits(at, stop, digits);
    int64_t n_digits = at - begin, written = 0, shift = 0;
    if (*at == '.') {
        const char* fraction = ++at;
        at = read_digits(at, stop, digits);
        shift = fraction - at;
        n_digits -= shift;
    }
    if (n_digits == 0) return nullptr;
    const char* end = at;
    if (*at == 'e' || *at == 'E') {
        const bool down = at[1] == '-';
        const char* power = at + 1 + (at[1] == '-' || at[1] == '+');
        if (!is_digit(*power)) return nullptr;
        for (at = power; is_digit(*at); ++at) written = std::min<int64_t>(10 * written + (*at - '0'), 1'000'000'000);
        if (down) written = -written;
    }
    shift += written;
    if (n_digits <= 19 && digits <= (uint64_t{1} << 53) && -22 <= shift && shift <= 22) {
        // Both numbers are exact, so the quotient is the nearest double. Rounding that to float is right as well,
        // unless it lies half way between two floats, where the digits lost in the first rounding would decide.
        const double number = static_cast<double>(digits);
        const double nearest = shift < 0 ? number / POWERS[-shift] : number * POWERS[shift];
        uint64_t bits;
        std::memcpy(&bits, &nearest, sizeof bits);
        if ((bits & 0x1fffffff) != 0x10000000) {
            value = static_cast<float>(negative ? -nearest : nearest);
            return at;
        }
    }
#if defined(__cpp_lib_to_chars) && !defined(LABELSENSE_C_DECIMALS)
    if (std::from_chars(begin, at, value).ec == std::errc::result_out_of_range)
        value = overflows(begin, end, written) ? std::numeric_limits<float>::infinity() : 0.0f;
#else
    value = nearest_float(begin, at);
#endif
    if (negative) value = -value;
    return at;
}

// Parses lines, at most 2 GB of them; the last must end with a newline. If `plain`, every line is a row. If not, it is as in libsvm files:
// comments begin with #, lines with nothing else are no rows, and qid:number says nothing.
class TextParser {
  public:
    TextParser(int64_t n_labels, int64_t n_features, bool plain) : d_(n_labels), p_(n_features), plain_(plain) {}

    TextRows parse(const char* at, const char* end) {
        const size_t pairs = static_cast<size_t>(std::count(at, end, ':'));
        out_.features.reserve(pairs);
        out_.values.reserve(pairs);
        end_ = end;
        while (at != end && (at = line(at))) ++out_.lines;
        return std::move(out_);
    }

  private:
    const char* line(const char* at) {
        const bool empty_labels = plain_ && is_blank(*at);
        at = skip(at);
        if (!plain_ && *at == '\n') return at + 1;
        if (!empty_labels && *at != '\n' && !(at = labels(at))) return nullptr;
        for (at = skip(at); *at != '\n'; at = skip(at))
            if (!(at = feature(at))) return nullptr;
        return finish_row() ? at + 1 : nullptr;
    }

    const char* skip(const char* at) const {
        while (is_blank(*at)) ++at;
        if (!plain_ && *at == '#')
            while (*at != '\n') ++at;
        return at;
    }

    // The first word of a line, unless it is a feature.
    const char* labels(const char* begin) {
        for (const char* at = begin;; ++at) {
            int64_t label;
            at = read_number(at, end_, label);
            if (!at) return qid(begin) ? begin : fail(NOT_A_LABEL, begin);
            if (*at == ':' && out_.labels.size() == static_cast<size_t>(out_.label_starts.back())) return begin;
            if (*at != ',' && !ends_number(*at)) return fail(NOT_A_LABEL, begin);
            if (label >= d_) return fail(LABEL_TOO_LARGE, begin);
            out_.labels.push_back(static_cast<int32_t>(label));
            if (*at != ',') return at;
        }
    }

    const char* feature(const char* begin) {
        int64_t j;
        const char* at = read_number(begin, end_, j);
        if (!at && qid(begin)) {
            for (at = begin; !ends_number(*at);) ++at;
            return at;
        }
        if (!at || *at != ':') return fail(NOT_A_PAIR, begin);
        if (j >= p_) return fail(FEATURE_TOO_LARGE, begin);
        const char* number = at + 1;
        float value;
        at = read_float(number, end_, value);
        if (!at || !ends_number(*at)) return fail(names_no_number(number) ? NOT_FINITE : NOT_A_PAIR, begin);
        if (std::isinf(value)) return fail(NOT_FINITE, begin);
        out_.features.push_back(static_cast<int32_t>(j));
        out_.values.push_back(value);
        return at;
    }

    bool qid(const char* at) const { return !plain_ && std::strncmp(at, "qid:", 4) == 0; }

    static bool names_no_number(const char* at) {  // nan, inf
        if (*at == '-' || *at == '+') ++at;
        return (*at | 32) == 'n' || (*at | 32) == 'i';
    }

    // Column numbers become ascending, as in canonical CSR.
    bool finish_row() {
        auto label = out_.labels.begin() + out_.label_starts.back();
        if (!ascending(label, out_.labels.end())) {
            std::sort(label, out_.labels.end());
            out_.labels.erase(std::unique(label, out_.labels.end()), out_.labels.end());
        }
        const int32_t start = out_.feature_starts.back(), stop = static_cast<int32_t>(out_.features.size());
        if (!ascending(out_.features.begin() + start, out_.features.end()) && !sort_features(start, stop)) return false;
        if (start < stop) {
            out_.first_feature = std::min(out_.first_feature, out_.features[start]);
            out_.n_features = std::max(out_.n_features, out_.features.back() + 1);
        }
        if (label != out_.labels.end()) out_.n_labels = std::max(out_.n_labels, out_.labels.back() + 1);
        out_.label_starts.push_back(static_cast<int32_t>(out_.labels.size()));
        out_.feature_starts.push_back(stop);
        return true;
    }

    template <class Iterator>
    static bool ascending(Iterator begin, Iterator end) {
        return std::adjacent_find(begin, end, [](int32_t a, int32_t b) { return a >= b; }) == end;
    }

    bool sort_features(int64_t start, int64_t stop) {
        row_.clear();
        for (int64_t e = start; e < stop; ++e) row_.emplace_back(out_.features[e], out_.values[e]);
        std::sort(row_.begin(), row_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        for (int64_t e = start; e < stop; ++e) {
            std::tie(out_.features[e], out_.values[e]) = row_[e - start];
            if (e > start && out_.features[e - 1] == out_.features[e]) {
                out_.token = std::to_string(out_.features[e]);
                out_.problem = FEATURE_TWICE;
                return false;
            }
        }
        return true;
    }

    const char* fail(Problem problem, const char* at) {
        const char* begin = at;
        while (!is_blank(*at) && *at != '\n') ++at;
        out_.token.assign(begin, std::min<int64_t>(at - begin, 80));
        out_.problem = problem;
        return nullptr;
    }

    int64_t d_, p_;
    bool plain_;
    const char* end_ = nullptr;
    TextRows out_;
    std::vector<std::pair<int32_t, float>> row_;
};

struct Text {
    std::unique_ptr<char[]> characters;
    size_t size;
};

inline char* write_float(char* at, char* end, float value) {
    const auto whole = static_cast<int32_t>(std::fabs(value) < 1e6f ? value : 0.0f);
    if (static_cast<float>(whole) == value && !(whole == 0 && std::signbit(value))) return std::to_chars(at, end, whole).ptr;
#if defined(__cpp_lib_to_chars) && !defined(LABELSENSE_C_DECIMALS)
    return std::to_chars(at, end, value).ptr;
#else
    return shortest_decimal(at, end, value);
#endif
}

// The text of n rows; features are numbered from `first`. Rows without labels start with a blank.
inline Text format_rows(const int64_t* label_starts, const int32_t* labels, const int64_t* feature_starts,
                        const int32_t* features, const float* values, int64_t n, int64_t first) {
    constexpr int64_t LABEL = 11, PAIR = 28, LINE = 2;  // the most characters each can take, with what separates them
    const int64_t room = (label_starts[n] - label_starts[0]) * LABEL + (feature_starts[n] - feature_starts[0]) * PAIR + n * LINE;
    Text text{std::unique_ptr<char[]>(new char[room]), 0};
    char *at = text.characters.get(), *end = at + room;
    for (int64_t i = 0; i < n; ++i) {
        for (int64_t e = label_starts[i]; e < label_starts[i + 1]; ++e) {
            if (e > label_starts[i]) *at++ = ',';
            at = std::to_chars(at, end, labels[e]).ptr;
        }
        if (label_starts[i] == label_starts[i + 1] && feature_starts[i] == feature_starts[i + 1]) *at++ = ' ';
        for (int64_t e = feature_starts[i]; e < feature_starts[i + 1]; ++e) {
            *at++ = ' ';
            at = std::to_chars(at, end, features[e] + first).ptr;
            *at++ = ':';
            at = write_float(at, end, values[e]);
        }
        *at++ = '\n';
    }
    text.size = static_cast<size_t>(at - text.characters.get());
    return text;
}

}  // namespace labelsense
