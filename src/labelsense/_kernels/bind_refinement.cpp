// Candidates, classifiers of labels, and boosted trees.
#include "bindings.hpp"
#include "boosting.hpp"
#include "pairs.hpp"
#include "ranker.hpp"

namespace labelsense {

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
            Trees trees(roots.data(), static_cast<int64_t>(roots.shape(0)), feature.data(), value.data(), left.data());
            trees.add(features.data(), static_cast<int64_t>(features.shape(0)), static_cast<int64_t>(features.shape(1)),
                      out.data());
        },
        Release());
}

}  // namespace labelsense
