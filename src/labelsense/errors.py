"""What a user can mend: three kinds of error, all of them ValueErrors."""

from __future__ import annotations


class InputError(ValueError):
    """What was passed in breaks a rule. The message says the name, the rule, the value got and the remedy.

    Examples
    --------
    >>> from labelsense import CompressedLabelClassifier, InputError
    >>> try:
    ...     CompressedLabelClassifier().fit([[0.0], [1.0]], [[], []])
    ... except InputError as error:
    ...     print(error)
    y has no labels: every row is empty. At least one row must have a label.
    """


class FormatError(ValueError):
    """A file that does not say what its format wants, with the place."""


class ModelFileError(ValueError):
    """A file is not a model, or not one that this version can read.

    Examples
    --------
    >>> from labelsense import ModelFileError, load_model
    >>> try:
    ...     model = load_model(__file__)
    ... except ModelFileError as error:
    ...     print("no model")
    no model
    """
