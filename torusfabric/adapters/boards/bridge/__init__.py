"""Boards reached over bridges: one block that runs alone, or all boards together.

A bridge connects a computer to the bus of one board. The commands ``build``, ``flash``, ``monitor``
and ``run`` call these functions for a fabric on several boards. The module `connected` runs all
boards, and `linked` simulates them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ....errors import InputError
from ..hardware.block import Block
from ..hardware.system import BoardSystem
from ..pairs import LAYERS, pair_links
from ..pairs.serdes import FABRIC_MHZ
from .connected import ConnectedBoards
from .linked import linked_blocks as link_fabrics
from .linked import simulated_ports

if TYPE_CHECKING:
    from ....fpga.board import Board
    from ....fpga.bridge.bus_access import BusAccess

__all__ = ["choose_fabrics", "connect", "fit_board", "link_fabrics", "place_fabric",
           "simulated_ports"]  # fmt: skip


def fit_board(board: Board, choices: Mapping[str, Any]) -> Board:
    """Return a board whose fabric has the clock frequency that the links between boards need.

    Links on transceivers need a fixed frequency. With other links `board` is returned unchanged.

    Parameters
    ----------
    board : Board
        The board that the user has chosen.
    choices : mapping of str to object
        Options of the command by keyword. Only ``phy`` is used, the physical layer of the links.
    """
    return replace(board, mhz=FABRIC_MHZ) if choices["phy"] == "serdes" else board


def place_fabric(system: BoardSystem, choices: Mapping[str, Any], platform: Any = None) -> Block:
    """Return the block chosen with ``--block``: the fabric of one board.

    Its link ports are connected to pins, or looped back: to each other.

    Parameters
    ----------
    system : BoardSystem
        The fabric on all boards.
    choices : mapping
        Choices of the command, by option name.
    platform : Platform, optional
        Platform whose pins carry the links; needed with ``--phy lvds`` or ``serdes``.

    Raises
    ------
    InputError
        If no existing block is chosen, or if the chosen physical layer excludes a single block.
    """
    phy = choices["phy"]
    if choices["block"] is None:
        raise InputError(
            f"{choices['command']} with --boards needs --block, for example --block 0,1, because "
            "a board holds one block"
        )
    number = system.boards.parse_block(choices["block"])
    if phy is None:
        return Block(system, number)
    if phy not in LAYERS:
        raise InputError(
            f"--phy {phy} is not available with --block; choose lvds or serdes, or leave --phy "
            "out, so that link ports are looped back"
        )
    if platform is None:
        raise InputError(
            "--block and --phy exclude each other where boards run, because linked boards run "
            "together; leave --block out"
        )
    return Block(system, number, links=pair_links(system, number, platform, choices["lanes"]))


def choose_fabrics(
    system: BoardSystem, choices: Mapping[str, Any], *, built: bool = False
) -> Block | list[Block]:
    """Return the fabric or fabrics that a command runs: one board block, or those of all boards.

    Parameters
    ----------
    system : BoardSystem
        The fabric on all boards.
    choices : mapping
        Choices of the command, by option name. ``block`` is None, or names a board block by its
        coordinates, such as ``0,1``.
    built : bool
        True if a bitstream was built with these choices. A block whose links are on pins then runs
        only together with the other boards, so the result is all blocks even if ``block`` is given.

    Returns
    -------
    Fabric or list of Fabric
        The board block that ``block`` names; without a name all blocks, joined by their links.
    """
    if choices["block"] is not None and not (built and choices["phy"]):
        return place_fabric(system, choices)
    platform = None
    if choices["phy"] in LAYERS:
        from ....fpga.board import find_board

        if choices["board"] in (None, "sim"):
            raise InputError(
                f"--phy {choices['phy']} needs --board NAME, a board that has the pairs of pins"
            )
        platform = fit_board(find_board(choices["board"]), choices).make_platform()
    return link_fabrics(system, platform, choices["lanes"])


def connect(fabrics: Sequence[Block], accesses: Sequence[BusAccess]) -> ConnectedBoards:
    """Return the fabric on several boards, as an object that runs jobs over their open bridges.

    Parameters
    ----------
    fabrics : sequence of Block
        Expected fabric of each board.
    accesses : sequence of BusAccess
        Open bridge to each board, in the same order.
    """
    return ConnectedBoards(fabrics, accesses)
