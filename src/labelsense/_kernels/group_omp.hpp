// Greedy search for groups of labels: the structured greedy algorithm (StructOMP) of Huang, Zhang and Metaxas.
//
// The blocks are the given groups, which may overlap, and all single labels. Each step takes the block B with the largest
// gain per coding length, of what is new in it: the sum of (a_j' r)^2 / ||a_j||^2, which is ||P_B r||^2 where the columns of
// a group are orthogonal, over |B| + log2(2 G) for one of G groups and 1 + log2(2 d) for one of d labels. A block that
// does not fit into the support that was asked for is no choice, so each size is a pursuit of its own.
#pragma once

#include "greedy.hpp"

namespace labelsense {

template <class Op>
class GroupOmp : public Greedy<Op, GroupOmp<Op>> {
    using Base = Greedy<Op, GroupOmp<Op>>;
    friend Base;

  public:
    static constexpr bool NESTED = false;

    // Group g has the labels members[starts[g]] to members[starts[g + 1] - 1], each once.
    template <class Indices>
    GroupOmp(const Op& op, int64_t largest, const Indices& starts, const Indices& members)
        : Base(op, largest), starts_(starts.data()), members_(members.data()),
          n_groups_(static_cast<int64_t>(starts.shape(0)) - 1), group_bits_(1 + std::log2(static_cast<double>(n_groups_))),
          label_bits_(1 + std::log2(static_cast<double>(op.d))), taken_(op.d) {}

  private:
    void restart() { std::fill(taken_.begin(), taken_.end(), 0); }

    bool grow(const float* c, int64_t room, double enough, Outcome* outcome) {
        float best;
        int64_t label = Base::search(c, &best);
        if (best <= enough) return false;
        double most = static_cast<double>(best) * best / (1 + label_bits_);
        int64_t chosen = -1;
        for (int64_t g = 0; g < n_groups_; ++g) {
            double worth = worth_of(g, c, room);
            if (worth > most) most = worth, chosen = g;
        }
        bool grown = false;
        if (chosen < 0) grown = add(label);
        else
            for (int64_t e = starts_[chosen]; e < starts_[chosen + 1]; ++e) grown |= add(members_[e]);
        if (!grown) *outcome = Outcome::RANK_DEFICIENT;
        return grown;
    }

    // The gain per coding length of what is new in a group, or 0 where that is too large.
    double worth_of(int64_t g, const float* c, int64_t room) const {
        const float* w = op_.inverse_norms;
        int64_t size = 0;
        double gain = 0;
        for (int64_t e = starts_[g]; e < starts_[g + 1]; ++e) {
            int64_t j = members_[e];
            if (taken_[j]) continue;
            double x = w ? static_cast<double>(c[j]) * w[j] : c[j];
            gain += x * x;
            ++size;
        }
        return size <= room ? gain / (static_cast<double>(size) + group_bits_) : 0;
    }

    // A label that is there already, or depends on those that are, adds nothing to the fit and is passed over.
    bool add(int64_t j) {
        if (taken_[j] || !active_.append(j, c0_[j])) return false;
        return taken_[j] = true;
    }

    using Base::active_;
    using Base::c0_;
    using Base::op_;
    const int64_t *starts_, *members_;
    int64_t n_groups_;
    double group_bits_, label_bits_;
    std::vector<char> taken_;
};

}  // namespace labelsense
