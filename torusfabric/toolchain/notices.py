"""What a user wants to know while something takes long, said by way of `logging`.

The commands show it on standard error; a program of one's own sees it where it listens to the
logger ``torusfabric``.
"""

import logging

__all__ = ["LOGGER", "say"]

#: Where notices go.
LOGGER = logging.getLogger("torusfabric")


def say(text: str) -> None:
    """Give a notice, a line of text."""
    LOGGER.info("%s", text)
