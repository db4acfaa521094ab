// Candidates, classifiers of labels, and boosted trees.
#include <tuple>

#include "bindings.hpp"
#include "boosting.hpp"
#include "pairs.hpp"
#include "ranker.hpp"

namespace labelsense {

namespace {

// Scores that keep the arrays alive that they point into.
template <class Kind, class... Arrays>
struct Keeping : Kind {
    std::tuple<Arrays...> arrays;

    Keeping(Kind scores, Arrays... kept) : Kind(std::move(scores)), arrays(kept...) {}
};

}  // namespace

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
    nb::class_<Scores>(module, "Scores").def(
        "fill",
        [](const Scores& scores, Array<float, 2> out) {
            Floats row = make_floats(scores.width());
            for (int64_t i = 0; i < static_cast<int64_t>(out.shape(0)); ++i) {
                scores.row(i, row.get());
                std::copy(row.get(), row.get() + scores.d, out.data() + i * scores.d);
            }
        },
        Release());
    using OfArray = Keeping<StoredScores, Array<const float, 2>>;
    nb::class_<OfArray, Scores>(module, "StoredScores")
        .def("__init__", [](OfArray* self, Array<const float, 2> scores) {
            new (self) OfArray(StoredScores(scores.data(), static_cast<int64_t>(scores.shape(1))), scores);
        });
    using OfHadamard = Keeping<HadamardScores, Array<const float, 2>, Values>;
    nb::class_<OfHadamard, Scores>(module, "HadamardScores")
        .def("__init__",
             [](OfHadamard* self, const Hadamard& op, Array<const float, 2> R, Values weights) {
                 new (self) OfHadamard(HadamardScores(op, R.data(), weights.data()), R, weights);
             },
             nb::keep_alive<1, 2>());
    using OfSparse = Keeping<SparseScores, Starts, Indices, Values, Starts, Indices, Values, Values, Values>;
    nb::class_<OfSparse, Scores>(module, "SparseScores")
        .def("__init__", [](OfSparse* self, Starts x_starts, Indices x_indices, Values x, Starts s_starts, Indices s_indices,
                            Values s, Values row_weights, Values label_weights) {
            const int64_t d = static_cast<int64_t>(label_weights.shape(0));
            new (self) OfSparse(SparseScores({x_starts.data(), x_indices.data(), x.data()},
                                             {s_starts.data(), s_indices.data(), s.data()}, row_weights.data(),
                                             label_weights.data(), d),
                                x_starts, x_indices, x, s_starts, s_indices, s, row_weights, label_weights);
        });
    module.def(
        "shortlist",
        [](std::vector<const Scores*> scores, std::vector<double> weights, Places sure_starts, Indices sure,
           Values sure_values, int64_t k, Array<int32_t, 2> labels, Array<int64_t, 1> counts, Array<float, 3> values) {
            const int64_t n = static_cast<int64_t>(counts.shape(0)), width = static_cast<int64_t>(labels.shape(1));
            Shortlist shortlist(std::move(scores), std::move(weights), k);
            for (int64_t i = 0; i < n; ++i) {
                const int64_t start = sure_starts.data()[i];
                counts.data()[i] = shortlist.choose(i, sure.data() + start, sure_values.data() + start,
                                                    sure_starts.data()[i + 1] - start, labels.data() + i * width,
                                                    values.data() + i * width, n * width);
            }
            return shortlist.finite();
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
        "largest_of_rows",
        [](Array<const float, 2> values, Array<int32_t, 2> places, Array<float, 2> found) {
            const int64_t n = static_cast<int64_t>(values.shape(0)), width = static_cast<int64_t>(values.shape(1));
            const int64_t k = static_cast<int64_t>(places.shape(1));
            LargestPlaces largest;
            for (int64_t i = 0; i < n; ++i) {
                const float* row = values.data() + i * width;
                int64_t at = i * k;
                for (const int32_t place : largest.find(row, width, k)) places.data()[at] = place, found.data()[at++] = row[place];
            }
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
        [](Starts indptr, Indices indices, Values data, int64_t n_features, Starts w_indptr, Indices w_indices,
           Values w_data, Values bias, Places starts, Indices rows, Places places, int64_t begin, int64_t end,
           Array<float, 1> out) {
            margins({indptr.data(), indices.data(), data.data()}, n_features,
                    {w_indptr.data(), w_indices.data(), w_data.data()}, bias.data(),
                    {starts.data(), rows.data(), places.data()}, begin, end, out.data());
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
            Trees trees(roots.data(), static_cast<int64_t>(roots.shape(0)), feature.data(), value.data(), left.data());
            trees.add(features.data(), static_cast<int64_t>(features.shape(0)), static_cast<int64_t>(features.shape(1)),
                      out.data());
        },
        Release());
}

}  // namespace labelsense
