"""How good predictions are, on sparse input: rankings, sets of labels, probabilities, scores.

Every function takes the true labels as an indicator matrix (n, d), sparse or dense; nothing here is ever dense (n, d).
``unseen``, where a function has it, adds to the number of true labels of each row those that have no column.
"""

from labelsense.metrics.calibration import (
    Reliability,
    calibration_error,
    missed_share,
    reliability_curve,
)
from labelsense.metrics.distances import sparsity_error, split_largest, squared_error
from labelsense.metrics.ranking import (
    coverage_at_k,
    inverse_propensities,
    ndcg_at_k,
    precision_at_k,
    propensity_scored_precision_at_k,
    propensity_weights,
    ranking_figures,
    recall_at_k,
)
from labelsense.metrics.sets import LabelTable, f1_score, label_table, precision_recall
from labelsense.metrics.thresholds import above, best_f1_threshold, label_thresholds

__all__ = [
    "LabelTable",
    "Reliability",
    "above",
    "best_f1_threshold",
    "calibration_error",
    "coverage_at_k",
    "f1_score",
    "inverse_propensities",
    "label_table",
    "label_thresholds",
    "missed_share",
    "ndcg_at_k",
    "precision_at_k",
    "precision_recall",
    "propensity_scored_precision_at_k",
    "propensity_weights",
    "ranking_figures",
    "recall_at_k",
    "reliability_curve",
    "sparsity_error",
    "split_largest",
    "squared_error",
]
