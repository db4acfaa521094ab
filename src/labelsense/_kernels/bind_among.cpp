// Decoders among some columns of A, which differ from row to row. In a file of their own: they are not what has to be fastest,
// and what is inlined here is not inlined less elsewhere.
#include <stdexcept>

#include "bind_decoders.hpp"

namespace labelsense {

namespace {

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

// For all rows at once and one support size: what is found are places among the labels of the row.
struct WithSome {
    template <template <class> class Algorithm, class Holder, class... Extra>
    static void bind(nb::module_& module, const char* name) {
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
};

template <class Holder>
void bind_form(nb::module_& module, const char* name) {
    nb::class_<AmongArrays<Holder>>(module, name)
        .def_prop_ro("n_measurements", [](const AmongArrays<Holder>& some) { return operator_of(some.holder).m; })
        .def_prop_ro("n_labels", &AmongArrays<Holder>::most);
    module.def(
        "among",
        [](const Holder& holder, Array<const int64_t, 1> starts, Array<const int32_t, 1> labels) {
            return AmongArrays<Holder>{holder, starts, labels};
        },
        nb::keep_alive<0, 1>());
    bind_decoders<WithSome, Holder>(module);
}

}  // namespace

void bind_among(nb::module_& module) {
    bind_form<Hadamard>(module, "AmongHadamard");
    bind_form<DenseArrays>(module, "AmongDense");
    bind_form<WhitenedArrays>(module, "AmongWhitened");
}

}  // namespace labelsense
