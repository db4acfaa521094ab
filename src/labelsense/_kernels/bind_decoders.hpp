// Binds all decoders for one form of A. A form is held by what keeps its arrays alive, and `operator_of` gives it.
#pragma once

#include <optional>

#include "bindings.hpp"
#include "correlation.hpp"
#include "cosamp.hpp"
#include "foba.hpp"
#include "lasso.hpp"
#include "multistage_lasso.hpp"
#include "omp.hpp"

namespace labelsense {

// A Dense operator that keeps the arrays it points into alive.
struct DenseArrays {
    Array<const float, 2> columns;
    std::optional<Array<const float, 2>> gram;
    Array<const float, 1> inverse_norms;
    Dense op;

    DenseArrays(Array<const float, 2> columns_, std::optional<Array<const float, 2>> gram_, Array<const float, 1> inverse_,
                double unit)
        : columns(columns_), gram(gram_), inverse_norms(inverse_),
          op(columns.data(), static_cast<int64_t>(columns.shape(1)), static_cast<int64_t>(columns.shape(0)),
             gram ? gram->data() : nullptr, inverse_norms.data(), unit) {}
};

struct WhitenedArrays {
    Array<const float, 2> whitening, inverse_whitening, columns;
    Array<const float, 1> inverse_norms;
    Whitened op;

    WhitenedArrays(const Hadamard& rows, Array<const float, 2> whitening_, Array<const float, 2> inverse_whitening_,
                   Array<const float, 2> columns_, Array<const float, 1> inverse_)
        : whitening(whitening_), inverse_whitening(inverse_whitening_), columns(columns_), inverse_norms(inverse_),
          op(rows, whitening.data(), inverse_whitening.data(), columns.data(), inverse_norms.data()) {}
};

inline const Hadamard& operator_of(const Hadamard& op) { return op; }
inline const Dense& operator_of(const DenseArrays& arrays) { return arrays.op; }
inline const Whitened& operator_of(const WhitenedArrays& arrays) { return arrays.op; }

// A decoder with all columns; `extra` are its parameters beyond (operator, largest size).
struct WithAll {
    template <template <class> class Algorithm, class Holder, class... Extra>
    static void bind(nb::module_& module, const char* name) {
        module.def(
            name,
            [](const Holder& holder, Array<const float, 2> H, std::vector<int64_t> sizes, Array<int64_t, 3> index,
               Array<float, 3> value, Array<int64_t, 2> count, Extra... extra) {
                const auto& op = operator_of(holder);
                Output out{std::move(sizes), index.data(), value.data(), count.data()};
                Algorithm<std::decay_t<decltype(op)>> algorithm(op, out.largest(), extra...);
                return decode_rows(algorithm, op, H.data(), static_cast<int64_t>(H.shape(0)), out);
            },
            Release());
    }
};

// `How` binds one of them, with all columns or with some.
template <class How, class Holder>
void bind_decoders(nb::module_& module) {
    How::template bind<Correlation, Holder>(module, "correlation");
    How::template bind<Omp, Holder, bool, double>(module, "omp");
    How::template bind<Foba, Holder, double>(module, "foba");
    How::template bind<Cosamp, Holder, int64_t>(module, "cosamp");
    How::template bind<Lasso, Holder>(module, "lasso");
    How::template bind<MultistageLasso, Holder, double, int64_t>(module, "multistage_lasso");
}

}  // namespace labelsense
