"""A fabric on several boards: its blocks of nodes, the links between them, and common starts.

Each board holds one *board block*, a part of the nodes of a torus, and has its own oscillator. An
arc between two such blocks is *cut*: it leads from a *link port* of one board, over a cable, to a
link port of another. An axis along which there are several boards is cut, too. A run takes as many
cycles as on one chip, plus a constant overhead, because a receiver delays every word from a cable
until a fixed latency has passed. After an error of a link the boards repeat a run; each execution
is an *attempt*.

======== =========================================================================================
hardware nodes, links with elastic buffers and CRCs, and the control of a board
pairs    links on differential pairs and on transceivers of an ECP5
make     choices of a command to a `BoardSystem`
files    Verilog of each kind of board, a bench with all boards, and the manifest
drive    simulation of all boards, each with its own clock
claims   proof: each word arrives in its cycle, and boards start and end runs together
bridge   boards that a computer reaches over bridges: one board alone, or all boards together
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
