"""A fabric on several boards: its blocks of nodes, the links between them, and common starts.

Each board holds one *block* of the nodes of a torus and has its own oscillator. An arc between two
blocks is *cut*: it ends at a *link port* of both boards, and a cable connects the two. A run takes
as many cycles as on one chip, plus a constant overhead, because a receiver delays every word from a
cable until a fixed latency has passed.

======== =========================================================================================
hardware nodes, links with elastic buffers and CRCs, and the control of a board
pairs    links on differential pairs and on transceivers of an ECP5
make     choices of a command to a `BoardSystem`
files    Verilog of each kind of board, a bench with all boards, and the manifest
drive    simulation of all boards, each with its own clock
claims   proof: each word arrives in its cycle, and boards start and end runs together
bridge   boards reached over bridges from a computer: one block alone, or all boards together
======== =========================================================================================
"""

from typing import TYPE_CHECKING

from ...toolchain.exports import lazy_exports

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

__getattr__ = lazy_exports(__name__)
