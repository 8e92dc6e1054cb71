"""Hardware: builds what a switch program says, and decides nothing."""

from .fabric import build_fabric

__all__ = ["build_fabric"]
