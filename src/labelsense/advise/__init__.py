"""Before training: how many measurements, which decoder, what to expect, and what it will cost."""

from labelsense.advise.advice import Advice, Option
from labelsense.advise.advisor import advise
from labelsense.advise.costs import Costs
from labelsense.advise.sparsity import Sparsity

__all__ = ["Advice", "Costs", "Option", "Sparsity", "advise"]
