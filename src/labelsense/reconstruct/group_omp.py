"""Greedy search for groups of labels that come together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsense import _kernels
from labelsense._storage import storable
from labelsense._typing import CSR, FloatArray, Label
from labelsense._validation import check_choice
from labelsense.reconstruct.compiled import CompiledDecoder, Found

LARGEST = 8  # labels in a group found from co-occurrence
BLOCK_PAIRS = 2**22  # pairs of labels that are counted at a time


@storable()
class GroupOMPDecoder(CompiledDecoder):
    """Orthogonal matching pursuit that takes whole groups of labels: structured sparsity.

    Each step takes the group, or the single label, that gains most in fit for its coding length, then fits all chosen
    columns by least squares. A group of labels that come together takes fewer bits to name than its labels one by one,
    so it is found at a level of noise, or with so few measurements, at which its labels are not. Use it where labels
    come in blocks. Without groups it is :class:`~labelsense.OMPDecoder`.

    The coding length of a group is log2(2 G), for G groups, plus one for each label that is new; of a single label,
    log2(2 d) + 1. The gain is the sum of the squared correlations with the residual, for columns of length 1. A group
    whose new labels do not fit into ``n_nonzero`` is not taken. Solutions are not nested: a path costs one run per
    size.

    Parameters
    ----------
    groups : list of lists of int, or "cooccurrence"
        The columns of the labels of each group; groups may overlap, and labels may be in none.
        :func:`~labelsense.reconstruct.hierarchy_groups` makes them of broader and narrower labels. "cooccurrence" has
        ``fit_labels`` find them: labels that are together in at least two rows, and in at least as many as one without
        the other, are joined, those most often together first, up to 8 in a group.
    n_nonzero : int or "auto"
        The number of labels.

    Attributes
    ----------
    groups_ : csr_array (G, d)
        1 where a label is in a group.

    References
    ----------
    Huang, Zhang, Metaxas (2009), Learning with structured sparsity.

    Examples
    --------
    >>> from labelsense import GroupOMPDecoder, HadamardCompressor
    >>> A = HadamardCompressor(n_measurements=16, random_state=0).fit(64).operator_
    >>> decoder = GroupOMPDecoder([[0, 1, 2, 3], [3, 4, 5]], n_nonzero=4)
    >>> decoder.decode(decoder.prepare(A), [A.columns([0, 1, 2, 3]).sum(axis=1)]).indices.tolist()
    [0, 1, 2, 3]
    """

    learns = True
    guarantee = "for labels in few groups: A has a restricted isometry property for unions of groups (Huang et al.)"
    groups_: CSR

    def __init__(self, groups: Sequence[Sequence[int]] | str = "cooccurrence", n_nonzero: int | str = "auto") -> None:
        super().__init__(n_nonzero)
        self.groups = groups

    def fit_labels(self, Y: CSR) -> GroupOMPDecoder:
        if isinstance(self.groups, str):
            self.groups_ = check_choice(self.groups, "groups", {"cooccurrence": cooccurring})(Y)
        else:
            self.groups_ = _membership(self.groups, Y.shape[1])
        return self

    def _run(self, state: _kernels.Kernel, H: FloatArray, sizes: list[int], found: Found) -> list[int]:
        groups = self._groups_for(state.n_labels)
        return _kernels.group_omp(
            state, H, sizes, *found, groups.indptr.astype(np.int64), groups.indices.astype(np.int64)
        )

    def _groups_for(self, n_labels: int) -> CSR:
        if not hasattr(self, "groups_") and not isinstance(self.groups, str):
            return _membership(self.groups, n_labels)
        if not hasattr(self, "groups_"):
            raise ValueError(f"groups={self.groups!r} needs the labels: call fit_labels(Y) first, or pass lists.")
        if self.groups_.shape[1] > n_labels:
            raise ValueError(
                f"The groups are of {self.groups_.shape[1]} labels, and A has {n_labels}. Call fit_labels again."
            )
        return self.groups_


def cooccurring(Y: CSR) -> CSR:
    """Return the groups of labels that come together in the rows of Y (n, d), as CSR (G, d).

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> Y = sp.csr_array([[1, 1, 0, 0], [1, 1, 0, 1], [0, 0, 1, 1], [0, 0, 1, 0]])
    >>> cooccurring(Y).toarray().tolist()
    [[1.0, 1.0, 0.0, 0.0]]
    """
    group_of: dict[int, list[int]] = {}
    for i, j in _pairs(Y):
        left, right = group_of.get(i, [i]), group_of.get(j, [j])
        if left is not right and len(left) + len(right) <= LARGEST:
            group_of.update(dict.fromkeys(left + right, left + right))
    found = {tuple(sorted(group)) for group in group_of.values()}
    return _membership(sorted(found), Y.shape[1])


def hierarchy_groups(broader: Mapping[Label, Any], labels: Sequence[Label]) -> list[list[int]]:
    """Return a group for each label of a hierarchy: the label and those above it, nearest first, up to 8.

    For :class:`GroupOMPDecoder`, where rows that have a label mostly have its broader labels as well.

    Parameters
    ----------
    broader : dict
        The parent of a label, or the list of its parents, as ``skos:broader`` gives them. Labels at the top are left
        out, or have None.
    labels : list
        The labels in column order, such as ``clf.labels_``: those of label lists are sorted. Others may be on the way
        between them; they have no column.

    Examples
    --------
    >>> from labelsense.reconstruct import hierarchy_groups
    >>> hierarchy_groups({"chess": "board game", "board game": "game", "go": ["board game"]}, ["chess", "game", "go"])
    [[0, 1], [2, 1]]
    """
    columns = {label: j for j, label in enumerate(labels)}
    groups = ([columns[above] for above in _upwards(label, broader) if above in columns] for label in labels)
    return [group[:LARGEST] for group in groups if len(group) > 1]


def _upwards(label: Label, broader: Mapping[Label, Any]) -> list[Label]:
    """Return a label and all above it, by distance. A hierarchy that goes in circles ends where it meets itself."""
    found = {label: None}  # in the order of insertion
    level = [label]
    while level:
        above = [parent for child in level for parent in _as_labels(broader.get(child)) if parent not in found]
        found |= dict.fromkeys(above)
        level = above
    return list(found)


def _as_labels(parents: Any) -> list[Label]:
    if parents is None:
        return []
    return list(parents) if isinstance(parents, (list, set, frozenset)) else [parents]


def _pairs(Y: CSR) -> list[tuple[int, int]]:
    """Return the pairs of labels to join: those with the largest share of common rows first, then the lowest."""
    Y = sp.csr_array((np.ones(Y.nnz, np.int64), Y.indices, Y.indptr), shape=Y.shape)
    by_label = Y.T.tocsr()
    counts = np.diff(by_label.indptr)
    work = np.cumsum(by_label @ np.diff(Y.indptr))  # pairs up to each label
    cuts = np.flatnonzero(np.diff(work // BLOCK_PAIRS)) + 1
    pairs, shares = [], []
    for start, stop in pairwise([0, *cuts.tolist(), Y.shape[1]]):
        together = (by_label[start:stop] @ Y).tocoo()
        i, j, both = together.row + start, together.col, together.data
        share = both / (counts[i] + counts[j] - both)
        keep = (i < j) & (both >= 2) & (share >= 0.5)
        pairs.append(np.stack([i[keep], j[keep]], axis=1))
        shares.append(share[keep])
    joined = np.concatenate(pairs)
    order = np.lexsort((joined[:, 1], joined[:, 0], -np.concatenate(shares)))
    return list(map(tuple, joined[order].tolist()))


def _membership(groups: Sequence[Sequence[int]], n_labels: int) -> CSR:
    """Return groups given as lists of labels as CSR (G, d)."""
    members = [np.unique(np.asarray(group)) for group in groups]
    for i, group in enumerate(members):
        if group.size and (group.dtype.kind not in "iu" or group[0] < 0 or group[-1] >= n_labels):
            raise ValueError(
                f"groups must be lists of label columns from 0 to {n_labels - 1}. Got {list(groups[i])!r} as group {i}."
            )
    starts = np.concatenate([[0], np.cumsum([len(group) for group in members], dtype=np.int64)]).astype(np.int64)
    columns = np.concatenate([np.zeros(0, np.int64), *members]).astype(np.int64)
    return sp.csr_array((np.ones(len(columns), np.float32), columns, starts), shape=(len(members), n_labels))
