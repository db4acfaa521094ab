"""Step 4: candidates from several sources, judged by what was learned on rows out of sample."""

from labelsense.refine.refiner import Calibration, Refiner
from labelsense.refine.shortlist import Reconstruction

__all__ = ["Calibration", "Reconstruction", "Refiner"]
