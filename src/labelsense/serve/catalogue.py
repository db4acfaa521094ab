"""The labels of a model as its users know them: URIs, names, notations, frequencies; and the search for them."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

import numpy as np

from labelsense._typing import IntArray, Label
from labelsense.data.subjects import NO_LANGUAGE, Subjects
from labelsense.serve.problems import Problem

SORTS = ("label", "uri", "count")


class Catalogue:
    """The labels of a model, and what a vocabulary says of them. A label is named by its URI, which is it as a string.

    Parameters
    ----------
    names : list of labels or None
        In column order; None where labels are numbers from 0 on.
    n_labels : int
        How many.
    subjects : Subjects, optional
        A vocabulary that knows the URIs.
    """

    def __init__(self, names: list[Label] | None, n_labels: int, subjects: Subjects | None = None) -> None:
        self.n_labels = n_labels
        self.subjects = subjects
        self._names = names

    @cached_property
    def uris(self) -> list[str]:
        """The URIs, in column order."""
        return [str(name) for name in (range(self.n_labels) if self._names is None else self._names)]

    @cached_property
    def _columns(self) -> dict[str, int]:
        return {uri: j for j, uri in enumerate(self.uris)}

    @cached_property
    def extensible(self) -> bool:
        """Whether there can be new labels: where labels are strings, a URI says what the new one is."""
        return self._names is not None and all(isinstance(name, str) for name in self._names)

    @property
    def languages(self) -> list[str]:
        """The languages that labels are known in."""
        return [NO_LANGUAGE] if self.subjects is None else self.subjects.languages or [NO_LANGUAGE]

    def check_language(self, language: str | None) -> str:
        """Return the language to show labels in."""
        if language is None:
            return self.languages[0]
        if language not in self.languages and self.subjects is not None:
            known = ", ".join(self.languages)
            raise Problem(400, f"language must be one that the vocabulary has: {known}. Got {language!r}.")
        return language

    def unknown_uris(self) -> list[str]:
        """Return the labels of the model that the vocabulary does not have."""
        return [] if self.subjects is None else [uri for uri in self.uris if uri not in self.subjects]

    def column(self, uri: str) -> int | None:
        """Return the column of a label, None where the model has none."""
        return self._columns.get(uri)

    def label(self, uri: str) -> Label:
        """Return the label of the model that a URI names; refuse one that it does not know."""
        column = self.column(uri)
        if column is None:
            raise Problem(404, f"The model has no label {uri[:200]!r}.", members={"unknown": [uri]})
        return column if self._names is None else self._names[column]

    def labels_of(self, uris: tuple[str, ...], name: str) -> list[Label]:
        """Return the labels of a list; refuse those that the model does not know."""
        unknown = [uri for uri in uris if uri not in self._columns]
        if unknown:
            detail = f"{name} must hold labels of the model. Got {unknown[0][:200]!r}."
            raise Problem(404, detail, members={"unknown": unknown})
        return [self.label(uri) for uri in uris]

    def entry(self, uri: str, language: str | None = None) -> dict[str, Any]:
        """Return what Annif says of a subject."""
        name = None if self.subjects is None else self.subjects.label(uri, language)
        notation = None if self.subjects is None else self.subjects.notation(uri)
        return {"uri": uri, "label": uri if name is None else name, "notation": notation}

    def full_entry(self, uri: str, counts: IntArray | None, language: str | None = None) -> dict[str, Any]:
        """Return all that is known of a label of the model."""
        entry = self.entry(uri, language) | {"count": None if counts is None else int(counts[self._columns[uri]])}
        if self.subjects is None:
            return entry
        wider, narrower = self.subjects.broader(uri), self.subjects.narrower(uri)
        return entry | {
            "broader": [self.entry(other, language) for other in wider[:100]],
            "narrower": [self.entry(other, language) for other in narrower[:100]],
        }

    def select(self, query: str, sort: str, descending: bool, counts: IntArray | None) -> IntArray:
        """Return the columns of the labels that have the query in their name or URI, sorted."""
        found = np.arange(self.n_labels) if not query else self._matches(query)
        keys = self._sort_keys(sort, counts)[found]
        order = np.argsort(-keys if descending else keys, kind="stable")
        return found[order]

    def complete(self, query: str, limit: int, counts: IntArray | None) -> list[int]:
        """Return the best columns for what has been typed: names that begin so first, then words, then any place."""
        found = self._matches(query) if query else np.arange(self.n_labels)
        folded = query.casefold()
        if len(found) > 10_000 and counts is not None:  # enough to choose from
            found = found[np.argsort(-counts[found], kind="stable")[:10_000]]

        def place(column: int) -> tuple[int, int, str]:
            name = self._folded[column]
            at = name.find(folded)
            kind = 0 if at == 0 else 1 if not name[at - 1].isalnum() else 2
            return kind, 0 if counts is None else -int(counts[column]), name

        return sorted(found.tolist(), key=place)[:limit]

    def _sort_keys(self, sort: str, counts: IntArray | None) -> IntArray:
        if sort == "count":
            return np.zeros(self.n_labels, np.int64) if counts is None else counts
        return self._by_label if sort == "label" else self._by_uri

    @cached_property
    def _folded(self) -> list[str]:
        """The names in column order, as they are searched: the name, and the URI if that is another."""
        entries = ((uri, self.entry(uri)["label"]) for uri in self.uris)
        return [(name if name == uri else f"{name} {uri}").casefold().replace("\n", " ") for uri, name in entries]

    @cached_property
    def _text(self) -> str:
        """All names in one string, which a million labels are searched in within milliseconds."""
        return "\n".join(self._folded)

    @cached_property
    def _starts(self) -> IntArray:
        lengths = np.fromiter((len(name) + 1 for name in self._folded), np.int64, self.n_labels)
        return np.concatenate([[0], np.cumsum(lengths)[:-1]])

    @cached_property
    def _by_label(self) -> IntArray:
        return _ranks(self._folded)

    @cached_property
    def _by_uri(self) -> IntArray:
        return _ranks(self.uris)

    def _matches(self, query: str) -> IntArray:
        sought = re.escape(query.casefold().replace("\n", " "))
        places = np.fromiter((match.start() for match in re.finditer(sought, self._text)), np.int64)
        return np.unique(np.searchsorted(self._starts, places, side="right") - 1)


def _ranks(names: list[str]) -> IntArray:
    """Return the place of each name in the sorted order."""
    ranks = np.empty(len(names), np.int64)
    ranks[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    return ranks
