# amaranth: UnusedElaboratable=no
"""The top of a board: a fabric of its nodes, with a port for each cut arc, and what starts it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..memories import address_width
from ..netlist import Fixed, Part, Parts, Role
from .control import BoardControl
from .receiver import Buffer, Receiver
from .symbols import FRAME_BITS
from .transmitter import Transmitter

if TYPE_CHECKING:
    from ..fabric_builder import FabricBuilder
    from .link_plan import LinkPlan

__all__ = ["LINK_PORTS", "add_board", "link_port"]

#: What ends at the control of the board: a name of the fabric's own has this in front.
RUN = "run_"

#: What the board has in place of ports of the fabric.
STATUS = ("busy", "done", "cycles", "error")

#: The ports of a link: whether they are inputs, and whether they are a word, a frame or a clock.
LINK_PORTS = ("tx_word", "tx_frame", "rx_word", "rx_frame", "rx_clk")


def link_port(link: int, name: str) -> str:
    """The name of a port of a link."""
    return f"link_{link}_{name}"


def add_board(build: FabricBuilder, plan: LinkPlan) -> None:
    """Put a fabric of the nodes of a board, with a host port, onto the board."""
    own = {"start", *plan.choices}
    renamed = {name: RUN + name for name in (*own, *STATUS)}
    inputs, outputs = build.enclose(renamed)
    for name, width in inputs.items():
        build.add_input(name, width)
    for name, width in outputs.items():
        if name not in STATUS:
            build.add_output(name, width)
    build.of_links.add("board")
    _add_control(build, plan, error="error" in outputs)
    for link in range(plan.links):
        _add_link(build, plan, link)


def _add_control(build: FabricBuilder, plan: LinkPlan, *, error: bool) -> None:
    """Add the control of the board."""
    make = partial(BoardControl, plan, error=error)
    build.add_module("board_control", make, role=Role.BOARD)
    inputs: dict[str, Parts] = {}
    outputs = {}
    of_links = {"said": plan.message_bits, "heard": 1, "strange": 1, "alive": 1, "lost": 1}
    for name, member in make().signature.members.items():
        width = member.shape
        if member.flow.name == "Out":
            outputs[name] = name, width
        elif name in of_links:
            inputs[name] = tuple(
                Part(f"{name}_{link}", 0, of_links[name]) for link in range(plan.links)
            )
        else:
            inputs[name] = (Part(name, 0, width),)
    build.add("the_board_control", "board_control", inputs=inputs, outputs=outputs)
    for name in (*STATUS, "failed", "attempts"):
        build.add_output(name, build.nets[name])


def _add_link(build: FabricBuilder, plan: LinkPlan, link: int) -> None:
    """Add a transmitter and a receiver."""
    (node, port), latency = plan.boards.links[link], plan.boards.latency[link]
    build.add_module("transmitter", partial(Transmitter, plan), role=Role.BOARD)
    names = {name: link_port(link, name) for name in LINK_PORTS}
    build.of_links.update(names.values())
    link_bits = plan.fields["link"].width
    sends: dict[str, Parts] = {
        "sent": (Part(f"tx_{node}", port * plan.width, plan.width),),
        "link": (Fixed(link, link_bits),),
    }
    sends |= {name: build.whole(name) for name in ("message", "running", "begins", "checking")}
    outputs = {
        "tx_word": (names["tx_word"], plan.width),
        "tx_frame": (names["tx_frame"], FRAME_BITS),
    }
    build.add(f"transmitter_{link}", "transmitter", inputs=sends, outputs=outputs)
    for net, width in outputs.values():
        build.add_output(net, width)
    bits = address_width(plan.depth(latency))
    build.add_module(f"buffer_{latency}", partial(Buffer, plan, latency), role=Role.BUFFER)
    build.add(
        f"buffer_at_{link}",
        f"buffer_{latency}",
        inputs={
            "rx_clk": build.add_input(names["rx_clk"]),
            "rx_word": build.add_input(names["rx_word"], plan.width),
            "rx_frame": build.add_input(names["rx_frame"], FRAME_BITS),
            "at": (Part(f"at_{link}", 0, bits),),
        },
        outputs={
            "head": (f"head_{link}", plan.width + FRAME_BITS),
            "count": (f"count_{link}", bits + 1),
        },
    )
    module = f"receiver_{latency}"
    build.add_module(module, partial(Receiver, plan, latency), role=Role.BOARD)
    identity = link_bits + plan.fields["board"].width
    takes: dict[str, Parts] = {
        "count": build.whole(f"count_{link}"),
        "head": build.whole(f"head_{link}"),
        "frozen": build.whole("frozen"),
        "due": build.whole(f"due_{latency}"),
        "check_due": build.whole(f"check_due_{latency}"),
        "peer": (Part("peers", link * identity, identity),),
    }
    gives = {"at": bits, "received": plan.width, "said": plan.message_bits}
    gives |= dict.fromkeys(("heard", "strange", "alive", "lost"), 1)
    build.add(
        f"receiver_at_{link}",
        module,
        inputs=takes,
        outputs={name: (f"{name}_{link}", width) for name, width in gives.items()},
    )
