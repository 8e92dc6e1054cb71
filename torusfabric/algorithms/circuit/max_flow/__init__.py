"""Circuit-switched broadcast by maximum flows, on any topology and around broken links."""

from .plan import MAX_FLOW

__all__ = ["MAX_FLOW"]
