"""What a user can mend."""

from __future__ import annotations


class FormatError(ValueError):
    """A file that does not say what its format wants, with the place."""
