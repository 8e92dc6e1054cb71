"""Fabrics with streams that have other sections than those that are chosen for them."""

from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from torusfabric.adapters.streams import hardware
from torusfabric.rtl.streams import plan
from torusfabric.rtl.streams.sections import Sections

__all__ = ["forced"]


@contextmanager
def forced(*, buffers):
    """Let nodes of fabrics that are made meanwhile hold so many messages on each side."""
    with ExitStack() as stack:
        for module in (hardware, plan):
            stack.enter_context(patch.object(module, "sections_of", lambda *_: Sections(buffers)))
        yield
