"""From the words of the library to those of the command line."""

from __future__ import annotations

import re

# A parameter stands alone: not in a path, not in a file name.
_ALONE = r"(?<![\w/.-]){}(?![\w/]|\.\w)"
_WORDS = {
    "n_measurements": "--measurements",
    "n_features": "--n-features",
    "text_fields": "--text-fields",
    "random_state": "--seed",
    "refiner=None": "--no-refine",
    "held_out='last'": "--held-out last",
    "held_out": "--held-out",
    "api_key_file": "--api-key-file",
    r"(pass|Pass) format= one of": r"\1 --format and one of",
    "pass format=": "pass --format",
    "without updatable=True": "without --updatable",
    r"Fit it with RidgeLearner\(updatable=True\), or start with partial_fit": "Train it again with --updatable",
    "Use RidgeLearner with a number for alpha": "Train it again with --updatable",
    "updatable=True": "--updatable",
    "to be updatable": "with --updatable",
}
# These are words of prose as well: only at the start of a rule.
_RULE = re.compile(r"^(features|compressor|learner|decoder|alpha|budget|format) must\b")
_TRANSLATIONS = [(re.compile(_ALONE.format(word)), option) for word, option in _WORDS.items()]


def in_options(message: str) -> str:
    """Return a message that names parameters with the options that stand for them.

    Examples
    --------
    >>> from labelsense.cli.options import in_options
    >>> in_options("n_measurements must be between 1 and 64. Got 5000.")
    '--measurements must be between 1 and 64. Got 5000.'
    """
    message = _RULE.sub(r"--\1 must", message).replace(", or an object of that kind", "")
    for pattern, option in _TRANSLATIONS:
        message = pattern.sub(option, message)
    return message
