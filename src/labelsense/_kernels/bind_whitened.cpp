// Whitened rows of a Hadamard matrix, and decoders for it.
#include "bind_decoders.hpp"
#include "group_omp.hpp"

namespace labelsense {

void bind_whitened(nb::module_& module) {
    nb::class_<WhitenedArrays>(module, "Whitened")
        .def(nb::init<const Hadamard&, Array<const float, 2>, Array<const float, 2>, Array<const float, 2>,
                      Array<const float, 1>>(),
             nb::keep_alive<1, 2>(), "rows"_a, "whitening"_a, "inverse_whitening"_a, "columns"_a, "inverse_norms"_a)
        .def_prop_ro("n_measurements", [](const WhitenedArrays& arrays) { return arrays.op.m; })
        .def_prop_ro("n_labels", [](const WhitenedArrays& arrays) { return arrays.op.d; });
    bind_decoders<WithAll, WhitenedArrays>(module);
    WithAll::bind<GroupOmp, WhitenedArrays, Array<const int64_t, 1>, Array<const int64_t, 1>>(module, "group_omp");
}

}  // namespace labelsense
