// Rows of numbers in text files.
#include "bindings.hpp"
#include "text.hpp"

namespace labelsense {

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

}  // namespace labelsense
