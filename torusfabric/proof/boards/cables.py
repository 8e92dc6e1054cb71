"""The wires of a board that no chip has: to link ports, and between them and what starts runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...rtl.boards.attach import RUN, link_port
from ..gates import Bit, GateText
from ..wiring import Wires, compared

if TYPE_CHECKING:
    from ...rtl.boards import BoardSystem

__all__ = ["check_cables"]

#: What transmitters and receivers are given by the control, as it is.
SENT = ("message", "running", "begins", "checking")

#: What receivers say, to the control.
SAID = ("said", "heard", "strange", "alive", "lost")


def check_cables(system: BoardSystem, text: GateText) -> int:
    """Compare the wires between link ports, the control, the sequencer and ports of a board."""
    return compared(text, _wires(system, text), "link ports")


def _wires(system: BoardSystem, text: GateText) -> Wires:
    """All of them."""
    control = text.instances["the_board_control"].pins
    sequencer = text.instances["the_sequencer"].pins
    starts = {"start": "start"} | {name: name for name in system.plan.choices}
    for name in starts:
        yield "the_board_control", name, [*control[name]], text.inputs[name]
        wanted = control[RUN + name][: len(sequencer[name])]
        yield "the_sequencer", name, [*sequencer[name]], wanted
    for name in ("busy", *(["error"] if "run_error" in control else [])):
        yield "the_board_control", RUN + name, [*control[RUN + name]], sequencer[name]
    yield "the_board_control", "board", [*control["board"]], text.inputs["board"]
    for name in ("busy", "done", "cycles", "error", "failed", "attempts"):
        yield "the top", name, [*text.outputs[name]], control[name]
    for link in range(system.plan.links):
        yield from _of_link(system, text, link)


def _of_link(system: BoardSystem, text: GateText, link: int) -> Wires:
    """Those of a link port."""
    names = {part: f"{part}_{link}" for part in ("transmitter",)}
    names |= {part: f"{part}_at_{link}" for part in ("buffer", "receiver")}
    transmitter, buffer, receiver = (
        text.instances[names[part]].pins for part in ("transmitter", "buffer", "receiver")
    )
    control = text.instances["the_board_control"].pins
    (node, port), latency = system.boards.links[link], system.boards.latency[link]
    sent = text.instances[f"router_at_{node}"].pins["tx"]
    width = system.fabric.width
    yield names["transmitter"], "sent", [*transmitter["sent"]], sent[port * width :][:width]
    number: list[Bit] = [str(link >> k & 1) for k in range(len(transmitter["link"]))]
    yield names["transmitter"], "link", [*transmitter["link"]], number
    for name in SENT:
        yield names["transmitter"], name, [*transmitter[name]], control[name]
    for name in ("tx_word", "tx_frame"):
        out = link_port(link, name)
        yield "the top", out, [*text.outputs[out]], transmitter[name]
    for name in ("rx_clk", "rx_word", "rx_frame"):
        yield names["buffer"], name, [*buffer[name]], text.inputs[link_port(link, name)]
    yield names["buffer"], "at", [*buffer["at"]], receiver["at"]
    for name in ("head", "count"):
        yield names["receiver"], name, [*receiver[name]], buffer[name]
    given = {"frozen": "frozen", "due": f"due_{latency}", "check_due": f"check_due_{latency}"}
    for name, net in given.items():
        yield names["receiver"], name, [*receiver[name]], control[net]
    bits = len(receiver["peer"])
    yield names["receiver"], "peer", [*receiver["peer"]], control["peers"][link * bits :][:bits]
    for name in SAID:
        bits = len(receiver[name])
        heard = control[name][link * bits :][:bits]
        yield "the_board_control", f"{name}[{link}]", [*heard], receiver[name]
