"""Boards: from a fabric to a bitstream, and onto the board."""

from ..synthesis.nextpnr import ECP5_PLACERS
from .board_files import find_board, load_boards
from .build import Built, build
from .catalogue import COMPACT, ECP5_ROUTERS, Board, Limit, Misfit
from .flash import LIST_PORTS, Step, flash, flash_command, lamp_meanings, steps_of
from .limits import Attempt, find_limit, try_board
from .needs import check_selection, duration

__all__ = ["COMPACT", "ECP5_PLACERS", "ECP5_ROUTERS", "LIST_PORTS", "Attempt", "Board", "Built",
           "Limit", "Misfit", "Step", "build", "check_selection", "duration", "find_board",
           "find_limit", "flash", "flash_command", "lamp_meanings", "load_boards", "steps_of",
           "try_board"]  # fmt: skip
