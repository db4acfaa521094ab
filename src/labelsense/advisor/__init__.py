"""Before training: how many measurements, which decoder, what to expect, and what it will cost."""

from labelsense.advisor.advice import Advice, Option
from labelsense.advisor.advise import advise
from labelsense.advisor.costs import Costs
from labelsense.advisor.sparsity import Sparsity

__all__ = ["Advice", "Costs", "Option", "Sparsity", "advise"]
