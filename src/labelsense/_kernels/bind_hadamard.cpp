// Rows of a Hadamard matrix, and decoders for them.
#include "bind_decoders.hpp"
#include "group_omp.hpp"

namespace labelsense {

namespace {

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

}  // namespace

void bind_hadamard(nb::module_& module) {
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
    bind_decoders<WithAll, Hadamard>(module);
    WithAll::bind<GroupOmp, Hadamard, Array<const int64_t, 1>, Array<const int64_t, 1>>(module, "group_omp");
    module.def("transform", transform, Release());
}

}  // namespace labelsense
