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
#include "simd.hpp"

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
        : n_(n), width_(width), settings_(settings), truth_(truth, truth + n), bins_(n * width), columns_(n * width),
          odds_(round_up(n, 4)), gradients_(n), rows_(n), aside_(n), drawn_(width) {
        std::iota(drawn_.begin(), drawn_.end(), 0);
        for (int64_t f = 0; f < width; ++f) choose_bins(features, f);
        put_into_bins(features);
        const double share = std::accumulate(truth_.begin(), truth_.end(), 0.0) / static_cast<double>(n);
        baseline = std::log(share / (1 - share));
        std::fill(odds_.begin(), odds_.end(), baseline);
    }

    // Adds trees.
    void grow(int64_t trees) {
        for (int64_t t = 0; t < trees; ++t) {
            take_gradients();
            grow_tree();
        }
    }

    double baseline;
    std::vector<int64_t> roots;
    std::vector<int32_t> feature;  // -1 in a leaf
    std::vector<double> value;     // the largest number that goes to the left, or what a leaf adds
    std::vector<int32_t> left;     // the right child follows it

  private:
    // The first and the second derivative of the loss, and how many rows they are of: one addition for all of them.
    using Sum = d4;
    enum { FIRST, SECOND, ROWS };
    struct Leaf {
        int64_t begin, end;  // of rows_
        int32_t node;
        Sum total = {};
        std::vector<Sum> sums;  // by drawn feature and bin
        double gain = 0;
        int64_t split_feature = -1, split_bin = 0;
    };

    void choose_bins(const float* features, int64_t f) {
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
        cuts_.push_back(std::move(cuts));
    }

    // A bin is how many cuts are below, of all of them at once: a search would guess, and guess wrong half of the time.
    void put_into_bins(const float* features) {
        std::vector<float> padded(width_ * BINS, INFINITY);
        for (int64_t f = 0; f < width_; ++f) std::copy(cuts_[f].begin(), cuts_[f].end(), padded.begin() + f * BINS);
        for (int64_t e = 0; e < n_ * width_; ++e) {
            const float* cuts = padded.data() + e % width_ * BINS;
            i8 below = {};
            for (int64_t b = 0; b < BINS; b += LANES) below -= load(cuts + b) < features[e];
            bins_[e] = columns_[e % width_ * n_ + e / width_] = static_cast<uint8_t>(total_of_lanes(below));
        }
    }

    void take_gradients() {
        for (int64_t i = 0; i < n_; i += 4) {
            d4 odds;
            std::memcpy(&odds, odds_.data() + i, sizeof odds);
            const d4 p = 1 / (1 + exponential(-odds)), second = p * (1 - p);
            for (int64_t j = 0; j < std::min<int64_t>(4, n_ - i); ++j)
                gradients_[i + j] = Sum{p[j] - truth_[i + j], second[j], 1, 0};
        }
    }

    void grow_tree() {
        for (int64_t f = 0; f < settings_.n_features; ++f) std::swap(drawn_[f], drawn_[f + random_.below(width_ - f)]);
        std::iota(rows_.begin(), rows_.end(), 0);
        roots.push_back(static_cast<int64_t>(feature.size()));
        std::vector<Leaf> leaves(1);
        leaves[0].begin = 0, leaves[0].end = n_, leaves[0].node = add_node();
        for (const Sum& g : gradients_) leaves[0].total += g;
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
            const double step = -settings_.rate * leaf.total[FIRST] / (leaf.total[SECOND] + settings_.penalty);
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
        const int64_t* columns = drawn_.data();
        leaf.sums.assign(drawn * BINS, Sum{});
        for (int64_t i = leaf.begin; i < leaf.end; ++i) {
            const uint8_t* bins = bins_.data() + int64_t{rows_[i]} * width_;
            const Sum g = gradients_[rows_[i]];
            Sum* sums = leaf.sums.data();
            for (int64_t f = 0; f < drawn; ++f, sums += BINS) sums[bins[columns[f]]] += g;
        }
    }

    double strength(const Sum& sum) const { return sum[FIRST] * sum[FIRST] / (sum[SECOND] + settings_.penalty); }

    void find_split(Leaf& leaf) {
        leaf.gain = 0;
        const double whole = strength(leaf.total), least = static_cast<double>(settings_.least_rows);
        for (int64_t f = 0; f < settings_.n_features; ++f) {
            Sum below = {};
            for (int64_t b = 0; b < static_cast<int64_t>(cuts_[drawn_[f]].size()); ++b) {
                below += leaf.sums[f * BINS + b];
                const Sum above = leaf.total - below;
                if (below[ROWS] < least) continue;
                if (above[ROWS] < least) break;
                const double gain = strength(below) + strength(above) - whole;
                if (gain > leaf.gain) leaf.gain = gain, leaf.split_feature = f, leaf.split_bin = b;
            }
        }
    }

    // Makes the leaf its left child, and returns the right one.
    Leaf split(Leaf& leaf) {
        const int64_t f = leaf.split_feature, column = drawn_[f];
        const uint8_t bin = static_cast<uint8_t>(leaf.split_bin);
        Leaf right;
        right.begin = part(leaf.begin, leaf.end, column, bin), right.end = leaf.end;
        for (int64_t b = 0; b <= leaf.split_bin; ++b) right.total += leaf.sums[f * BINS + b];
        std::swap(right.total, leaf.total);
        right.total -= leaf.total;
        feature[leaf.node] = static_cast<int32_t>(column);
        value[leaf.node] = cuts_[column][bin];
        const int32_t child = add_node();
        right.node = add_node();
        left[leaf.node] = child;
        leaf.node = child, leaf.end = right.begin;
        std::vector<Sum> both = std::move(leaf.sums);
        Leaf &smaller = right.total[ROWS] < leaf.total[ROWS] ? right : leaf, &larger = &smaller == &right ? leaf : right;
        sum_rows(smaller);
        larger.sums = std::move(both);
        for (size_t e = 0; e < larger.sums.size(); ++e) larger.sums[e] -= smaller.sums[e];
        find_split(leaf);
        find_split(right);
        return right;
    }

    // Puts the rows up to a bin first, in their order, and returns where the others begin. No branch depends on a row.
    int64_t part(int64_t begin, int64_t end, int64_t column, uint8_t bin) {
        const uint8_t* bins = columns_.data() + column * n_;
        int64_t low = begin, high = 0;
        for (int64_t i = begin; i < end; ++i) {
            const int32_t row = rows_[i];
            const bool above = bins[row] > bin;
            rows_[low] = row, aside_[high] = row;
            low += !above, high += above;
        }
        std::copy(aside_.begin(), aside_.begin() + high, rows_.begin() + low);
        return low;
    }

    int64_t n_, width_;
    BoostingSettings settings_;
    std::vector<uint8_t> truth_, bins_, columns_;  // bins by row, and by feature
    std::vector<double> odds_;
    std::vector<Sum> gradients_;
    std::vector<int32_t> rows_, aside_;
    std::vector<int64_t> drawn_;
    std::vector<std::vector<float>> cuts_;
    Shuffler random_{0};
};

}  // namespace labelsense
