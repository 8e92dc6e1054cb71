"""Notices on standard error, a line each."""

import contextlib
import logging
from collections.abc import Iterator

from ..toolchain.notices import LOGGER

__all__ = ["notices_shown"]


@contextlib.contextmanager
def notices_shown() -> Iterator[None]:
    """Show notices during the body."""
    handler, level = logging.StreamHandler(), LOGGER.level
    handler.setFormatter(logging.Formatter("torusfabric: %(message)s"))
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(level)
