"""Fabrics with streams that have other sections than those that are chosen for them."""

from contextlib import contextmanager
from unittest.mock import patch

from torusfabric.adapters.streams import front
from torusfabric.adapters.streams.sections import Sections

__all__ = ["forced"]


@contextmanager
def forced(*, buffers):
    """Let nodes of fabrics that are made meanwhile hold so many messages on each side."""
    with patch.object(front, "choose_sections", lambda *_: Sections(buffers)):
        yield
