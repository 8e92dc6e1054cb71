"""A fabric on several boards: its blocks of nodes, the links between them, and common starts.

======== =========================================================================================
hardware blocks of nodes with link ports, elastic buffers, CRCs, and the control of a board
pairs    links on differential pairs and on transceivers of an ECP5
make     from choices to a `BoardSystem`
files    Verilog of each kind of board, a bench of all of them, and the manifest
drive    simulation of all boards, each with a clock of its own
claims   proof: words arrive in their cycles, and boards start and end runs together
bridge   blocks on boards, behind bridges, and all of them run together
======== =========================================================================================
"""

from typing import TYPE_CHECKING

from ...toolchain.exports import exported

if TYPE_CHECKING:
    from .bridge.connected import ConnectedBoards
    from .claims.prove import prove_boards
    from .drive.simulate import BoardRun, SystemReport, simulate_boards
    from .files import emit_boards
    from .hardware.block import Block
    from .hardware.link_plan import LinkPlan
    from .hardware.system import BoardSystem, plan_links

__all__ = ["Block", "BoardRun", "BoardSystem", "ConnectedBoards", "LinkPlan", "SystemReport",
           "emit_boards", "plan_links", "prove_boards", "simulate_boards"]  # fmt: skip

__getattr__ = exported(__name__)
