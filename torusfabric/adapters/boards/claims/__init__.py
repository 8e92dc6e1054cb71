"""What is proved of fabrics on several boards."""

from .prove import prove_boards
from .prove import prove_boards as prove

__all__ = ["prove", "prove_boards"]
