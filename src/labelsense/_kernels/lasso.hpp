// The Lasso by its LARS path: the answer for a support size is the first knot at which the solution has that many
// non-zeros.
#pragma once

#include "lasso_path.hpp"

namespace labelsense {

template <class Op>
class Lasso {
  public:
    Lasso(const Op& op, int64_t largest) : path_(op, largest) {}

    Outcome run(const float* h, double length, Row& row) {
        path_.start(h, length, {});
        while (!row.done() && path_.step()) {
            int64_t nonzeros = path_.nonzeros();
            // Columns that join together make the support jump past a size: its answer is the knot before.
            while (!row.done() && row.wanted() < nonzeros) row.emit(path_.last_J(), path_.last_y());
            while (!row.done() && row.wanted() == nonzeros) row.emit(path_.J(), path_.y());
        }
        row.emit_rest(path_.J(), path_.y());
        return path_.outcome();
    }

  private:
    LassoPath<Op> path_;
};

}  // namespace labelsense
