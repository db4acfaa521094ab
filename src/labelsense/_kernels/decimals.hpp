// Floats as decimals where <charconv> does not have them, as in Apple's library: by the C library, in its own locale.
#pragma once

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>
#if !defined(__cpp_lib_to_chars) || defined(LABELSENSE_C_DECIMALS)
#include <locale.h>
#if defined(__APPLE__)
#include <xlocale.h>
#endif

namespace labelsense {

class PlainLocale {  // while it lives, this thread writes a point, whatever the user's language
  public:
    PlainLocale() : before_(uselocale(plain())) {}
    ~PlainLocale() { uselocale(before_); }
    PlainLocale(const PlainLocale&) = delete;

  private:
    static locale_t plain() {
        static const locale_t it = newlocale(LC_ALL_MASK, "C", nullptr);
        return it;
    }
    locale_t before_;
};

// The float nearest to a decimal; infinity if it is too large, 0 if it is too small.
inline float nearest_float(const char* begin, const char* end) {
    const std::string decimal(begin, end);
    const PlainLocale locale;
    return std::strtof(decimal.c_str(), nullptr);
}

// A decimal of as few digits as give the float back.
inline char* shortest_decimal(char* at, char* end, float value) {
    const PlainLocale locale;
    for (int digits = 1;; ++digits) {
        const int length = std::snprintf(at, static_cast<size_t>(end - at), "%.*g", digits, static_cast<double>(value));
        if (digits == 9 || std::strtof(at, nullptr) == value) return at + length;
    }
}

}  // namespace labelsense
#endif
