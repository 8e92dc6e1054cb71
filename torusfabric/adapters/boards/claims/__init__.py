"""What is proved of fabrics on several boards."""

from .prove import prove_boards

__all__ = ["prove_boards"]
