// Any stored matrix, and decoders for it.
#include <nanobind/stl/optional.h>

#include "bind_decoders.hpp"
#include "group_omp.hpp"

namespace labelsense {

void bind_dense(nb::module_& module) {
    nb::class_<DenseArrays>(module, "Dense")
        .def(nb::init<Array<const float, 2>, std::optional<Array<const float, 2>>, Array<const float, 1>, double>(),
             "columns"_a, "gram"_a.none(), "inverse_norms"_a, "unit"_a)
        .def_prop_ro("n_measurements", [](const DenseArrays& arrays) { return arrays.op.m; })
        .def_prop_ro("n_labels", [](const DenseArrays& arrays) { return arrays.op.d; });
    bind_decoders<WithAll, DenseArrays>(module);
    WithAll::bind<GroupOmp, DenseArrays, Array<const int64_t, 1>, Array<const int64_t, 1>>(module, "group_omp");
}

}  // namespace labelsense
