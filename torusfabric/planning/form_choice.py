"""Which forms an engine has."""

from ..schedule.model import Choice

__all__ = ["FormChoice"]


class FormChoice(Choice):
    """Which forms an engine has of those that are the best for some lengths."""

    #: That for short messages alone.
    SHORT = "short"
    #: That for long messages alone.
    LONG = "long"
    ALL = "all"
