"""Boards: from a fabric to a bitstream, and onto the board."""

from .build import Built, build
from .catalogue import COMPACT, ECP5_ROUTERS, Board, find_board, load_boards
from .flash import flash, flash_command
from .limits import Limit

__all__ = [
    "COMPACT",
    "ECP5_ROUTERS",
    "Board",
    "Built",
    "Limit",
    "build",
    "find_board",
    "flash",
    "flash_command",
    "load_boards",
]
