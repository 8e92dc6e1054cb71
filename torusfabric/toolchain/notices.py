"""Notices: lines of text that tell a user about the progress of long work, sent through `logging`.

Commands print notices on standard error. A Python program receives them if it adds a handler to
the logger ``torusfabric`` at the level `logging.INFO`.
"""

import logging

__all__ = ["LOGGER", "send_notice"]

#: The logger of all notices.
LOGGER = logging.getLogger("torusfabric")


def send_notice(text: str) -> None:
    """Send a notice, one line of text for users, to the logger ``torusfabric``."""
    LOGGER.info("%s", text)
