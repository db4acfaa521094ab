// The Python face of the kernels. Arrays are validated by the caller: here they only have a type and a layout.
// This file is compiled once per instruction set; MODULE_NAME tells the copies apart.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "boosting.hpp"
#include "correlation.hpp"
#include "cosamp.hpp"
#include "foba.hpp"
#include "gradients.hpp"
#include "group_omp.hpp"
#include "lasso.hpp"
#include "multistage_lasso.hpp"
#include "omp.hpp"
#include "pairs.hpp"
#include "ranker.hpp"
#include "sparse.hpp"
#include "text.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace labelsense;

namespace {

template <class T, int ndim>
using Array = nb::ndarray<T, nb::ndim<ndim>, nb::c_contig, nb::device::cpu>;
using Release = nb::call_guard<nb::gil_scoped_release>;

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

const Hadamard& operator_of(const Hadamard& op) { return op; }
const Dense& operator_of(const DenseArrays& arrays) { return arrays.op; }
const Whitened& operator_of(const WhitenedArrays& arrays) { return arrays.op; }

// Binds one algorithm for one operator; `extra` are its parameters beyond (operator, largest size).
template <template <class> class Algorithm, class Holder, class... Extra>
void bind(nb::module_& module, const char* name) {
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

// An operator, and for each row the only columns of it that count: those of row i are labels[starts[i]] and so on.
template <class Holder>
struct AmongArrays {
    const Holder& holder;
    Array<const int64_t, 1> starts;
    Array<const int32_t, 1> labels;

    int64_t n_rows() const { return static_cast<int64_t>(starts.shape(0)) - 1; }
    int64_t count(int64_t i) const { return starts.data()[i + 1] - starts.data()[i]; }
    int64_t most() const {
        int64_t most = 0;
        for (int64_t i = 0; i < n_rows(); ++i) most = std::max(most, count(i));
        return most;
    }
};

// The same as `bind`, for all rows at once and one support size: what is found are places among the labels of the row.
template <template <class> class Algorithm, class Holder, class... Extra>
void bind_among(nb::module_& module, const char* name) {
    module.def(
        name,
        [](const AmongArrays<Holder>& among, Array<const float, 2> H, std::vector<int64_t> sizes, Array<int64_t, 3> index,
           Array<float, 3> value, Array<int64_t, 2> count, Extra... extra) {
            using Op = std::decay_t<decltype(operator_of(among.holder))>;
            const Op& op = operator_of(among.holder);
            if (static_cast<int64_t>(H.shape(0)) != among.n_rows() || sizes.size() != 1)
                throw std::invalid_argument("All rows must be decoded at once, for one support size.");
            const int64_t size = sizes[0];
            std::vector<int64_t> outcomes(N_OUTCOMES);
            for (int64_t i = 0; i < among.n_rows(); ++i) {
                if (among.count(i) == 0) continue;
                Among<Op> some(op, among.labels.data() + among.starts.data()[i], among.count(i));
                Output out{{std::min(size, some.d)}, index.data() + i * size, value.data() + i * size, count.data() + i};
                Algorithm<Among<Op>> algorithm(some, out.largest(), extra...);
                const auto found = decode_rows(algorithm, some, H.data() + i * op.m, 1, out);
                for (size_t o = 0; o < N_OUTCOMES; ++o) outcomes[o] += found[o];
            }
            return outcomes;
        },
        Release());
}

template <template <class> class Algorithm, class Holder, class... Extra>
void bind_both(nb::module_& module, const char* name) {
    bind<Algorithm, Holder, Extra...>(module, name);
    bind_among<Algorithm, Holder, Extra...>(module, name);
}

template <class Holder>
void bind_all(nb::module_& module, const char* among) {
    nb::class_<AmongArrays<Holder>>(module, among)
        .def_prop_ro("n_measurements", [](const AmongArrays<Holder>& some) { return operator_of(some.holder).m; })
        .def_prop_ro("n_labels", &AmongArrays<Holder>::most);
    module.def(
        "among",
        [](const Holder& holder, Array<const int64_t, 1> starts, Array<const int32_t, 1> labels) {
            return AmongArrays<Holder>{holder, starts, labels};
        },
        nb::keep_alive<0, 1>());
    bind_both<Correlation, Holder>(module, "correlation");
    bind_both<Omp, Holder, bool, double>(module, "omp");
    bind_both<Foba, Holder, double>(module, "foba");
    bind_both<Cosamp, Holder, int64_t>(module, "cosamp");
    bind_both<Lasso, Holder>(module, "lasso");
    bind_both<MultistageLasso, Holder, double, int64_t>(module, "multistage_lasso");
    bind<GroupOmp, Holder, Array<const int64_t, 1>, Array<const int64_t, 1>>(module, "group_omp");
}

// Z = Y A' for a sparse Y (n, d).
void compress(const Hadamard& op, Array<const int64_t, 1> indptr, Array<const int64_t, 1> indices,
              Array<const float, 1> data, Array<float, 2> Z) {
    int64_t n = static_cast<int64_t>(Z.shape(0)), stride = round_up(op.m, LANES);
    Floats a = make_floats(stride), sum = make_floats(stride);
    for (int64_t i = 0; i < n; ++i) {
        std::fill(sum.get(), sum.get() + stride, 0.0f);
        for (int64_t e = indptr.data()[i]; e < indptr.data()[i + 1]; ++e) {
            op.column(indices.data()[e], a.get());
            float y = data.data()[e];
            for (int64_t r = 0; r < stride; ++r) sum[r] += y * a[r];
        }
        std::copy(sum.get(), sum.get() + op.m, Z.data() + i * op.m);
    }
}

// C = R A for R (n, m): the real columns only, or all D columns of the Hadamard matrix if C has room for them.
void correlate(const Hadamard& op, Array<const float, 2> R, Array<float, 2> C) {
    int64_t stride = static_cast<int64_t>(C.shape(1));
    Floats c = make_floats(stride == op.width ? 0 : op.width);
    for (int64_t i = 0; i < static_cast<int64_t>(R.shape(0)); ++i) {
        float* row = C.data() + i * stride;
        op.correlate(R.data() + i * op.m, stride == op.width ? row : c.get());
        if (stride != op.width) std::copy(c.get(), c.get() + stride, row);
    }
}

// The columns J, as rows of the output.
void columns(const Hadamard& op, Array<const int64_t, 1> J, Array<float, 2> out) {
    Floats a = make_floats(round_up(op.m, LANES));
    for (int64_t i = 0; i < static_cast<int64_t>(J.shape(0)); ++i) {
        op.column(J.data()[i], a.get());
        std::copy(a.get(), a.get() + op.m, out.data() + i * op.m);
    }
}

// a_0' a_j for each j
void gram_vector(const Hadamard& op, Array<float, 1> out) {
    for (int64_t j = 0; j < static_cast<int64_t>(out.shape(0)); ++j) out.data()[j] = static_cast<float>(op.gram(0, j));
}

// x <- W x for the Walsh-Hadamard matrix W of an order of at least 64
void transform(Array<float, 1> x) { fwht(x.data(), static_cast<int64_t>(x.shape(0))); }

using Starts = Array<const int64_t, 1>;
using Indices = Array<const int32_t, 1>;
using Values = Array<const float, 1>;

void bind_sparse(nb::module_& module) {
    module.def(
        "times_dense",
        [](Starts indptr, Indices indices, Values data, int64_t begin, int64_t end, Array<const float, 2> B,
           Array<float, 2> C) {
            times_dense({indptr.data(), indices.data(), data.data()}, begin, end, B.data(),
                        static_cast<int64_t>(B.shape(1)), C.data());
        },
        Release());
    module.def(
        "times_sparse",
        [](Starts indptr, Indices indices, Values data, int64_t begin, int64_t end, Starts b_indptr, Indices b_indices,
           Values b_data, Array<float, 2> C) {
            times_sparse({indptr.data(), indices.data(), data.data()}, begin, end,
                         {b_indptr.data(), b_indices.data(), b_data.data()}, static_cast<int64_t>(C.shape(1)), C.data());
        },
        Release());
    module.def(
        "mark_strongest",
        [](Starts indptr, Indices indices, Values data, int64_t k, Array<uint8_t, 1> kept) {
            mark_strongest({indptr.data(), indices.data(), data.data()}, static_cast<int64_t>(indptr.shape(0)) - 1, k,
                           kept.data());
        },
        Release());
    module.attr("FEATURE_TILE") = FEATURE_TILE;
    module.def(
        "tile_starts",
        [](Starts indptr, Indices indices, Values data, Array<int64_t, 2> starts) {
            tile_starts({indptr.data(), indices.data(), data.data()}, static_cast<int64_t>(starts.shape(1)),
                        static_cast<int64_t>(starts.shape(0)) - 1, starts.data());
        },
        Release());
    auto bind_gram = [&](auto number) {
        using Number = decltype(number);
        module.def(
            "gram",
            [](Starts indptr, Indices indices, Values data, Starts columns, Indices rows, Starts places,
               Array<const int64_t, 2> starts, int64_t begin, int64_t end, Array<Number, 2> G) {
                gram({indptr.data(), indices.data(), data.data()}, columns.data(), rows.data(), places.data(),
                     starts.data(), static_cast<int64_t>(starts.shape(1)), begin, end, static_cast<int64_t>(G.shape(1)),
                     G.data());
            },
            Release());
    };
    bind_gram(float{});
    bind_gram(double{});
    module.def(
        "quadratic_forms",
        [](Starts indptr, Indices indices, Values data, Starts columns, Indices rows, Starts places, int64_t begin,
           int64_t end, Array<const float, 2> S, Array<double, 1> q) {
            quadratic_forms({indptr.data(), indices.data(), data.data()}, columns.data(), rows.data(), places.data(), begin,
                            end, static_cast<int64_t>(S.shape(1)), S.data(), q.data());
        },
        Release());
}

void bind_gradients(nb::module_& module) {
    using Block = Array<float, 2>;
    using Sums = Array<double, 1>;
    module.def(
        "finish_product",
        [](Block Q, Block P, float alpha, Values mean, Values shift, int64_t begin, int64_t end, Sums curvature) {
            finish_product(Q.data(), P.data(), alpha, mean.data(), shift.data(), begin, end,
                           static_cast<int64_t>(P.shape(1)), curvature.data());
        },
        Release());
    module.def(
        "take_step",
        [](Block W, Block R, Block P, Block Q, Values step, Values inverse, int64_t begin, int64_t end, Sums squares,
           Sums preconditioned) {
            take_step(W.data(), R.data(), P.data(), Q.data(), step.data(), inverse.data(), begin, end,
                      static_cast<int64_t>(P.shape(1)), squares.data(), preconditioned.data());
        },
        Release());
    module.def(
        "turn_direction",
        [](Block P, Block R, Values turn, Values inverse, int64_t begin, int64_t end) {
            turn_direction(P.data(), R.data(), turn.data(), inverse.data(), begin, end, static_cast<int64_t>(P.shape(1)));
        },
        Release());
}

// Hands what `owner` holds to NumPy, which deletes it when done.
template <class T, class Owner>
nb::ndarray<nb::numpy, T, nb::ndim<1>> hand_over(T* data, size_t size, Owner owner) {
    auto* kept = new Owner(std::move(owner));
    nb::capsule capsule(kept, [](void* p) noexcept { delete static_cast<Owner*>(p); });
    return {data, {size}, capsule};
}

template <class T>
auto hand_over(std::vector<T> numbers) {
    T* data = numbers.data();
    size_t size = numbers.size();
    return hand_over(data, size, std::move(numbers));
}

void bind_refinement(nb::module_& module) {
    using Places = Array<const int64_t, 1>;
    module.def("train_ranker", [](Starts indptr, Indices indices, Values data, Array<const double, 1> squares,
                                  int64_t n_features, Places label_starts, Indices rows, Array<const uint8_t, 1> has,
                                  int64_t begin, int64_t end, int64_t n_first, double C, double tol, int64_t max_rounds,
                                  float smallest) {
        const bool twice = n_first < static_cast<int64_t>(squares.shape(0));
        Weights first, all;
        {
            nb::gil_scoped_release release;
            Ranker ranker({indptr.data(), indices.data(), data.data()}, squares.data(), n_features, C, tol, max_rounds,
                          smallest);
            ranker.train({label_starts.data(), rows.data(), has.data()}, begin, end, n_first, twice ? &first : nullptr, all);
        }
        const int64_t not_converged = all.not_converged;
        const auto as_tuple = [](Weights&& weights) {
            return nb::make_tuple(hand_over(std::move(weights.data)), hand_over(std::move(weights.indices)),
                                  hand_over(std::move(weights.indptr)), hand_over(std::move(weights.bias)));
        };
        return nb::make_tuple(as_tuple(std::move(all)), as_tuple(std::move(first)), not_converged);
    });
    module.def(
        "shortlist",
        [](std::vector<Array<const float, 2>> scores, std::vector<double> weights, Places sure_starts, Indices sure,
           int64_t k, Array<int32_t, 2> labels, Array<int64_t, 1> counts) {
            const int64_t d = static_cast<int64_t>(scores.front().shape(1)), width = static_cast<int64_t>(labels.shape(1));
            Shortlist shortlist(d, k);
            std::vector<const float*> rows(scores.size());
            for (int64_t i = 0; i < static_cast<int64_t>(counts.shape(0)); ++i) {
                for (size_t s = 0; s < scores.size(); ++s) rows[s] = scores[s].data() + i * d;
                const int64_t start = sure_starts.data()[i];
                counts.data()[i] = shortlist.choose(rows, weights, sure.data() + start, sure_starts.data()[i + 1] - start,
                                                    labels.data() + i * width);
            }
        },
        Release());
    module.def(
        "top_entries",
        [](Places indptr, Indices indices, Array<const double, 1> data, Array<int64_t, 2> labels, Array<float, 2> values) {
            top_entries(indptr.data(), indices.data(), data.data(), static_cast<int64_t>(labels.shape(0)),
                        static_cast<int64_t>(labels.shape(1)), labels.data(), values.data());
        },
        Release());
    module.def(
        "nearest",
        [](Starts indptr, Indices indices, Values data, Starts w_indptr, Indices w_indices, Values w_data, int64_t d,
           Array<int32_t, 2> labels, Array<int64_t, 1> counts) {
            nearest({indptr.data(), indices.data(), data.data()}, static_cast<int64_t>(counts.shape(0)),
                    {w_indptr.data(), w_indices.data(), w_data.data()}, d, static_cast<int64_t>(labels.shape(1)),
                    labels.data(), counts.data());
        },
        Release());
    module.def(
        "margins",
        [](Starts indptr, Indices indices, Values data, int64_t begin, int64_t end, int64_t n_features, Starts w_indptr,
           Indices w_indices, Values w_data, Values bias, Places starts, Indices labels, Array<float, 1> out) {
            margins({indptr.data(), indices.data(), data.data()}, begin, end, n_features,
                    {w_indptr.data(), w_indices.data(), w_data.data()}, bias.data(), starts.data(), labels.data(),
                    out.data());
        },
        Release());
    module.def(
        "margins_by_feature",
        [](Starts indptr, Indices indices, Values data, int64_t begin, int64_t end, Starts w_indptr, Indices w_indices,
           Values w_data, Values bias, Places starts, Indices labels, Array<float, 1> out) {
            margins_by_feature({indptr.data(), indices.data(), data.data()}, begin, end,
                               {w_indptr.data(), w_indices.data(), w_data.data()}, bias.data(),
                               static_cast<int64_t>(bias.shape(0)), starts.data(), labels.data(), out.data());
        },
        Release());
    module.def(
        "standing",
        [](Places starts, int64_t begin, int64_t end, Values scores, int64_t first, Array<float, 2> out) {
            standing(starts.data(), begin, end, scores.data(), static_cast<int64_t>(out.shape(1)), first, out.data());
        },
        Release());
    nb::class_<Booster>(module, "Booster")
        .def("__init__",
             [](Booster* self, Array<const float, 2> features, Array<const uint8_t, 1> truth, double rate, int64_t leaves,
                int64_t least_rows, double penalty, int64_t n_drawn) {
                 new (self) Booster(features.data(), truth.data(), static_cast<int64_t>(features.shape(0)),
                                    static_cast<int64_t>(features.shape(1)), {rate, leaves, least_rows, penalty, n_drawn});
             },
             Release())
        .def("grow", &Booster::grow, Release())
        .def("trees", [](const Booster& booster) {
            return nb::make_tuple(booster.baseline, hand_over(std::vector(booster.roots)),
                                  hand_over(std::vector(booster.feature)), hand_over(std::vector(booster.value)),
                                  hand_over(std::vector(booster.left)));
        });
    module.def(
        "add_trees",
        [](Places roots, Indices feature, Array<const double, 1> value, Indices left, Array<const float, 2> features,
           Array<double, 1> out) {
            Trees trees(roots.data(), static_cast<int64_t>(roots.shape(0)), feature.data(), value.data(), left.data(),
                        static_cast<int64_t>(feature.shape(0)));
            trees.add(features.data(), static_cast<int64_t>(features.shape(0)), static_cast<int64_t>(features.shape(1)),
                      out.data());
        },
        Release());
}

void bind_text(nb::module_& module) {
    nb::class_<TextRows>(module, "TextRows")
        .def_ro("lines", &TextRows::lines)
        .def_ro("first_feature", &TextRows::first_feature)
        .def_ro("n_features", &TextRows::n_features)
        .def_ro("n_labels", &TextRows::n_labels)
        .def_prop_ro("problem", [](const TextRows& rows) { return static_cast<int>(rows.problem); })
        .def_prop_ro("token", [](const TextRows& rows) { return nb::bytes(rows.token.data(), rows.token.size()); })
        .def("take_labels",
             [](TextRows& rows) {
                 return nb::make_tuple(hand_over(std::move(rows.labels)), hand_over(std::move(rows.label_starts)));
             })
        .def("take_features", [](TextRows& rows) {
            return nb::make_tuple(hand_over(std::move(rows.values)), hand_over(std::move(rows.features)),
                                  hand_over(std::move(rows.feature_starts)));
        });
    module.def("parse_rows", [](nb::bytes text, int64_t n_labels, int64_t n_features, bool plain) {
        const char* begin = text.c_str();
        nb::gil_scoped_release release;
        return TextParser(n_labels, n_features, plain).parse(begin, begin + text.size());
    });
    module.def("format_rows", [](Starts label_starts, Indices labels, Starts feature_starts, Indices features, Values values,
                                 int64_t first) {
        Text text;
        {
            nb::gil_scoped_release release;
            text = format_rows(label_starts.data(), labels.data(), feature_starts.data(), features.data(), values.data(),
                               static_cast<int64_t>(label_starts.shape(0)) - 1, first);
        }
        char* characters = text.characters.get();
        return hand_over(reinterpret_cast<uint8_t*>(characters), text.size, std::move(text));
    });
}

}  // namespace

NB_MODULE(MODULE_NAME, module) {
    nb::set_leak_warnings(false);  // what a program still holds when it ends is no leak, and no news to its user
    nb::class_<Hadamard>(module, "Hadamard")
        .def("__init__",
             [](Hadamard* self, Array<const int64_t, 1> rows, int64_t order, int64_t n_labels) {
                 new (self) Hadamard(rows.data(), static_cast<int64_t>(rows.shape(0)), order, n_labels);
             })
        .def_prop_ro("n_measurements", [](const Hadamard& op) { return op.m; })
        .def_prop_ro("n_labels", [](const Hadamard& op) { return op.d; })
        .def("compress", compress, Release())
        .def("correlate", correlate, Release())
        .def("columns", columns, Release())
        .def("gram_vector", gram_vector, Release());
    nb::class_<DenseArrays>(module, "Dense")
        .def(nb::init<Array<const float, 2>, std::optional<Array<const float, 2>>, Array<const float, 1>, double>(),
             "columns"_a, "gram"_a.none(), "inverse_norms"_a, "unit"_a)
        .def_prop_ro("n_measurements", [](const DenseArrays& arrays) { return arrays.op.m; })
        .def_prop_ro("n_labels", [](const DenseArrays& arrays) { return arrays.op.d; });
    nb::class_<WhitenedArrays>(module, "Whitened")
        .def(nb::init<const Hadamard&, Array<const float, 2>, Array<const float, 2>, Array<const float, 2>,
                      Array<const float, 1>>(),
             nb::keep_alive<1, 2>(), "rows"_a, "whitening"_a, "inverse_whitening"_a, "columns"_a, "inverse_norms"_a)
        .def_prop_ro("n_measurements", [](const WhitenedArrays& arrays) { return arrays.op.m; })
        .def_prop_ro("n_labels", [](const WhitenedArrays& arrays) { return arrays.op.d; });
    bind_all<Hadamard>(module, "AmongHadamard");
    bind_all<DenseArrays>(module, "AmongDense");
    bind_all<WhitenedArrays>(module, "AmongWhitened");
    module.def("transform", transform, Release());
    bind_sparse(module);
    bind_gradients(module);
    bind_refinement(module);
    bind_text(module);
    module.def("has_avx2", [] {
#if defined(LABELSENSE_HAS_V3)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
#else
        return false;
#endif
    });
}
