"""A fabric on several boards: its blocks of nodes, the links between them, and common starts.

Each board holds one block of nodes of a torus and has its own oscillator. A run takes the same
cycles as on one chip, plus a constant overhead, because links between boards pad every word to a
fixed latency.

======== =========================================================================================
hardware nodes, links with elastic buffers and CRCs, and the control of a board
pairs    links on differential pairs and on transceivers of an ECP5
make     choices of a command to a `BoardSystem`
files    Verilog of each kind of board, a bench with all boards, and the manifest
drive    simulation of all boards, each with its own clock
claims   proof: each word arrives in its cycle, and boards start and end runs together
bridge   boards behind bridges: one block alone, or all boards run together
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
