"""Text with generate loops over what there is many of."""

from .top import CompactTop

__all__ = ["CompactTop"]
