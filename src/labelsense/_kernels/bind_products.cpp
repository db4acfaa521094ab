// Products with sparse matrices, and the steps of conjugate gradients.
#include "bindings.hpp"
#include "gradients.hpp"
#include "sparse.hpp"

namespace labelsense {

namespace {

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

}  // namespace

void bind_products(nb::module_& module) {
    bind_sparse(module);
    bind_gradients(module);
}

}  // namespace labelsense
