// Boosted trees for a yes or no: each tree fits what the sum of those before it leaves of the truth, by Newton steps of the
// logistic loss. Features are put into bins once, and the sums of gradients over bins are all that a split asks for.
//
// Chen, Guestrin (2016), XGBoost; Ke and others (2017), LightGBM: trees grow leaf by leaf, where the gain is largest, and
// of two children only the smaller one is summed, the other one is what is left.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "ranker.hpp"

namespace labelsense {

struct BoostingSettings {
    double rate;         // what a tree counts
    int64_t leaves;      // of a tree, at most
    int64_t least_rows;  // in a leaf
    double penalty;      // of the squared values of leaves
    int64_t n_features;  // that a tree may ask for, drawn for each
};

class Booster {
  public:
    // Bins hold about equally many rows of a sample, and never two that a split could not tell apart.
    static constexpr int64_t BINS = 64, SAMPLE = 20000;

    Booster(const float* features, const uint8_t* truth, int64_t n, int64_t width, const BoostingSettings& settings)
        : n_(n), width_(width), settings_(settings), truth_(truth, truth + n), bins_(n * width), odds_(n), gradients_(n),
          rows_(n), drawn_(width) {
        std::iota(drawn_.begin(), drawn_.end(), 0);
        for (int64_t f = 0; f < width; ++f) put_into_bins(features, f);
        const double share = std::accumulate(truth_.begin(), truth_.end(), 0.0) / static_cast<double>(n);
        baseline = std::log(share / (1 - share));
        std::fill(odds_.begin(), odds_.end(), baseline);
    }

    // Adds trees.
    void grow(int64_t trees) {
        for (int64_t t = 0; t < trees; ++t) {
            for (int64_t i = 0; i < n_; ++i) {
                const double p = 1 / (1 + std::exp(-odds_[i]));
                gradients_[i] = {p - truth_[i], p * (1 - p)};
            }
            grow_tree();
        }
    }

    double baseline;
    std::vector<int64_t> roots;
    std::vector<int32_t> feature;  // -1 in a leaf
    std::vector<double> value;     // the largest number that goes to the left, or what a leaf adds
    std::vector<int32_t> left;     // the right child follows it

  private:
    struct Gradient {
        double first, second;
    };
    struct Sum {
        double first = 0, second = 0;
        int64_t rows = 0;
        void add(const Gradient& g) { first += g.first, second += g.second, ++rows; }
        void add(const Sum& o) { first += o.first, second += o.second, rows += o.rows; }
        Sum without(const Sum& o) const { return {first - o.first, second - o.second, rows - o.rows}; }
    };
    struct Leaf {
        int64_t begin, end;  // of rows_
        int32_t node;
        Sum total;
        std::vector<Sum> sums;  // by drawn feature and bin
        double gain = 0;
        int64_t split_feature = -1, split_bin = 0;
    };

    void put_into_bins(const float* features, int64_t f) {
        std::vector<float> seen;
        const int64_t step = std::max<int64_t>(1, n_ / SAMPLE);
        for (int64_t i = 0; i < n_; i += step) seen.push_back(features[i * width_ + f]);
        std::sort(seen.begin(), seen.end());
        std::vector<float> cuts;  // the largest number of each bin but the last
        const int64_t size = static_cast<int64_t>(seen.size());
        for (int64_t b = 1; b < BINS; ++b) {
            const float cut = seen[std::max<int64_t>(0, b * size / BINS - 1)];
            if (cut < seen.back() && (cuts.empty() || cut > cuts.back())) cuts.push_back(cut);
        }
        for (int64_t i = 0; i < n_; ++i) {
            auto place = std::lower_bound(cuts.begin(), cuts.end(), features[i * width_ + f]);
            bins_[i * width_ + f] = static_cast<uint8_t>(place - cuts.begin());
        }
        cuts_.push_back(std::move(cuts));
    }

    void grow_tree() {
        for (int64_t f = 0; f < settings_.n_features; ++f) std::swap(drawn_[f], drawn_[f + random_.below(width_ - f)]);
        std::iota(rows_.begin(), rows_.end(), 0);
        roots.push_back(static_cast<int64_t>(feature.size()));
        std::vector<Leaf> leaves(1);
        leaves[0].begin = 0, leaves[0].end = n_, leaves[0].node = add_node();
        for (const Gradient& g : gradients_) leaves[0].total.add(g);
        sum_rows(leaves[0]);
        find_split(leaves[0]);
        while (static_cast<int64_t>(leaves.size()) < settings_.leaves) {
            auto best = std::max_element(leaves.begin(), leaves.end(),
                                         [](const Leaf& a, const Leaf& b) { return a.gain < b.gain; });
            if (!(best->gain > 0)) break;
            Leaf right = split(*best);
            leaves.push_back(std::move(right));
        }
        for (const Leaf& leaf : leaves) {
            const double step = -settings_.rate * leaf.total.first / (leaf.total.second + settings_.penalty);
            value[leaf.node] = step;
            for (int64_t i = leaf.begin; i < leaf.end; ++i) odds_[rows_[i]] += step;
        }
    }

    int32_t add_node() {
        feature.push_back(-1), value.push_back(0), left.push_back(0);
        return static_cast<int32_t>(feature.size()) - 1;
    }

    void sum_rows(Leaf& leaf) {
        const int64_t drawn = settings_.n_features;
        leaf.sums.assign(drawn * BINS, Sum{});
        for (int64_t i = leaf.begin; i < leaf.end; ++i) {
            const uint8_t* bins = bins_.data() + int64_t{rows_[i]} * width_;
            const Gradient g = gradients_[rows_[i]];
            for (int64_t f = 0; f < drawn; ++f) leaf.sums[f * BINS + bins[drawn_[f]]].add(g);
        }
    }

    double strength(const Sum& sum) const { return sum.first * sum.first / (sum.second + settings_.penalty); }

    void find_split(Leaf& leaf) {
        leaf.gain = 0;
        const double whole = strength(leaf.total);
        for (int64_t f = 0; f < settings_.n_features; ++f) {
            Sum below;
            for (int64_t b = 0; b < static_cast<int64_t>(cuts_[drawn_[f]].size()); ++b) {
                below.add(leaf.sums[f * BINS + b]);
                const Sum above = leaf.total.without(below);
                if (below.rows < settings_.least_rows) continue;
                if (above.rows < settings_.least_rows) break;
                const double gain = strength(below) + strength(above) - whole;
                if (gain > leaf.gain) leaf.gain = gain, leaf.split_feature = f, leaf.split_bin = b;
            }
        }
    }

    // Makes the leaf its left child, and returns the right one.
    Leaf split(Leaf& leaf) {
        const int64_t f = leaf.split_feature, column = drawn_[f];
        const uint8_t bin = static_cast<uint8_t>(leaf.split_bin);
        auto middle = std::stable_partition(rows_.begin() + leaf.begin, rows_.begin() + leaf.end,
                                            [&](int32_t i) { return bins_[int64_t{i} * width_ + column] <= bin; });
        Leaf right;
        right.begin = middle - rows_.begin(), right.end = leaf.end;
        for (int64_t b = 0; b <= leaf.split_bin; ++b) right.total.add(leaf.sums[f * BINS + b]);
        std::swap(right.total, leaf.total);
        right.total = right.total.without(leaf.total);
        feature[leaf.node] = static_cast<int32_t>(column);
        value[leaf.node] = cuts_[column][bin];
        const int32_t child = add_node();
        right.node = add_node();
        left[leaf.node] = child;
        leaf.node = child, leaf.end = right.begin;
        std::vector<Sum> both = std::move(leaf.sums);
        Leaf &smaller = right.total.rows < leaf.total.rows ? right : leaf, &larger = &smaller == &right ? leaf : right;
        sum_rows(smaller);
        larger.sums = std::move(both);
        for (size_t e = 0; e < larger.sums.size(); ++e) larger.sums[e] = larger.sums[e].without(smaller.sums[e]);
        find_split(leaf);
        find_split(right);
        return right;
    }

    int64_t n_, width_;
    BoostingSettings settings_;
    std::vector<uint8_t> truth_, bins_;
    std::vector<double> odds_;
    std::vector<Gradient> gradients_;
    std::vector<int32_t> rows_;
    std::vector<int64_t> drawn_;
    std::vector<std::vector<float>> cuts_;
    Shuffler random_{0};
};

}  // namespace labelsense
