"""Step 3: from predicted measurements back to labels."""

from labelsense.reconstruct.base import Decoder
from labelsense.reconstruct.correlation import CorrelationDecoder
from labelsense.reconstruct.cosamp import CoSaMPDecoder
from labelsense.reconstruct.foba import FoBaDecoder
from labelsense.reconstruct.group_omp import GroupOMPDecoder, hierarchy_groups
from labelsense.reconstruct.lasso import LassoDecoder
from labelsense.reconstruct.multistage_lasso import MultistageLassoDecoder
from labelsense.reconstruct.omp import OMPDecoder
from labelsense.reconstruct.projection import ProjectionDecoder

DECODERS: dict[str, type[Decoder]] = {
    "omp": OMPDecoder,
    "foba": FoBaDecoder,
    "cosamp": CoSaMPDecoder,
    "lasso": LassoDecoder,
    "correlation": CorrelationDecoder,
    "multistage_lasso": MultistageLassoDecoder,
    "group_omp": GroupOMPDecoder,
    "projection": ProjectionDecoder,
}

__all__ = [
    "DECODERS",
    "CoSaMPDecoder",
    "CorrelationDecoder",
    "Decoder",
    "FoBaDecoder",
    "GroupOMPDecoder",
    "LassoDecoder",
    "MultistageLassoDecoder",
    "OMPDecoder",
    "ProjectionDecoder",
    "hierarchy_groups",
]
