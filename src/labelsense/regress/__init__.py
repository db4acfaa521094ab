"""Step 2: the regressions from features to measurements."""

from labelsense.regress.adapter import SklearnLearner
from labelsense.regress.base import Learner
from labelsense.regress.ridge import RidgeLearner

__all__ = ["Learner", "RidgeLearner", "SklearnLearner"]
