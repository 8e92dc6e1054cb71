"""The self-test image: a fabric that tests itself on a board, and talks over a serial line."""

from .image import SelfTest, self_test
from .protocol import Console, open_port

__all__ = ["Console", "SelfTest", "open_port", "self_test"]
