"""Fabrics with streams that have other sections than those that are chosen for them."""

from unittest.mock import patch

from torusfabric.rtl.streams import plan
from torusfabric.rtl.streams.sections import Sections

__all__ = ["forced"]


def forced(*, buffers):
    """Let nodes of fabrics that are made meanwhile hold so many messages on each side."""
    return patch.object(plan, "sections_of", lambda *_: Sections(buffers))
