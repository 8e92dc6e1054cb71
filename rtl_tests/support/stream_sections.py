"""Fabrics with streams that have a given number of sections, in place of the usual choice."""

from contextlib import contextmanager
from unittest.mock import patch

from torusfabric.adapters.streams import front
from torusfabric.adapters.streams.sections import Sections

__all__ = ["forced"]


@contextmanager
def forced(*, buffers):
    """Build fabrics, within the context, whose nodes hold `buffers` messages on each side."""
    with patch.object(front, "choose_sections", lambda *_: Sections(buffers)):
        yield
