"""Nodes with streams whose tables are loaded: what is constant of a form comes from a table.

A table of each node says what there is to know of an entry; it is looked up when the command of a
run has come, and kept until the run begins, or has been unloaded. Words that are sent lie as the
host would write them; where those lie that are received another table says, by packet and chunk.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib.data import StructLayout
from amaranth.lib.wiring import In, Out

from ..memories import address_width
from ..modules import Leaf
from ..multiplexer import bit_count
from ..run_choices import RunChoices
from ..streams.commands import CommandShape
from ..streams.endpoint import AT_ONCE, StreamEnds
from ..streams.sections import Sections
from ..streams.shapes import LoaderShape, RowKey, RunFacts, UnloaderShape
from ..streams.words import WordShape, cleared, state
from .image_loader import SETTLED
from .layout import TableLayout

__all__ = ["NodeFacts", "command_shape", "stream_ends"]


def run_facts(layout: TableLayout) -> RunFacts:
    """What commands say of a run, which is its entry, and what nodes look up of that."""
    return RunFacts(
        commanded=True, form_bits=layout.entry_bits, root_bits=0, position_bits=0,
        sections=Sections(), looked_up={"load": layout.load_facts, "unload": layout.unload_facts},
    )  # fmt: skip


def command_shape(layout: TableLayout, choices: RunChoices) -> CommandShape:
    """What commands choose: an entry, or an image."""
    frame = layout.frame
    return CommandShape(
        choices,
        run_facts(layout),
        frame.flits,
        starts=layout.start,
        root_bits=address_width(frame.nodes),
        settled=SETTLED,
    )


def stream_ends(layout: TableLayout, width: int) -> StreamEnds:
    """What all loaders have in common, and all unloaders."""
    frame, row, facts = layout.frame, layout.unload_row, layout.unload_facts
    both: dict[str, Any] = {
        "facts": run_facts(layout),
        "packets": (frame.nodes,),
        "shifts": (0,),
        "at_root": (False,),
        "by_position": False,
        "address_bits": layout.of_node.base_bits,
        "kept": True,
        "width": width,
        "beat": 1,
        "most_flits": frame.flits,
    }
    words: dict[str, Any] = {"most": frame.flits, "block": frame.flits, "in_turn": True}
    number_bits, row_bits = (facts[name].width for name in ("own_last", "first_row"))
    loader = LoaderShape(
        words=WordShape(**words),
        rows=RowKey((0,), (0,)),
        packet_bits=number_bits,
        row=StructLayout({}),
        memory_bits=0,
        named=(True,),
        some=True,
        **both,
    )
    unloader = UnloaderShape(
        # As many chunks as the facts say.
        words=WordShape(**words, chunks=(1, frame.chunks), pitch=(1, 1)),
        rows=RowKey((row_bits,), (0,)),
        packet_bits=row_bits,
        row=row,
        memory_bits=bit_count(frame.ports + 1),
        by_root=(False,),
        roots=(0,),
        id_bits=number_bits,
        memories=frame.ports + 1,
        late=frame.ports + 1 > AT_ONCE,
        lacking=True,
        **both,
    )
    return StreamEnds(loader, unloader, own=(frame.ports,))


class NodeFacts(Leaf):
    """Looks up what a node has to know of runs, when their commands have come.

    Members
    -------
    load_valid, load_mode : In
        Of messages of even and of odd numbers, whether their commands are there, and their entries.
    run_begins, clear : In(1)
    facts_row : In
        What the table says of an entry that was asked for in the cycle before.
    entry : Out
    known : Out(2)
        Whether what there is to know of these messages is there.
    load_facts, unload_facts : Out
        What loaders have to know of two messages, and unloaders of a run in each section.
    """

    def __init__(self, facts: RunFacts) -> None:
        loads, unloads = facts.looked_up["load"], facts.looked_up["unload"]
        self._modes, self._bits = facts.form_bits, (loads.size, unloads.size)
        super().__init__(
            {
                "load_valid": In(2),
                "load_mode": In(2 * self._modes),
                "run_begins": In(1),
                "clear": In(1),
                "facts_row": In(sum(self._bits)),
                "entry": Out(self._modes),
                "known": Out(2),
                "load_facts": Out(2 * self._bits[0]),
                "unload_facts": Out(2 * self._bits[1]),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Ask for what is said of one message in a cycle, and of the other in the next."""
        m, valid = Module(), self.value("load_valid")
        odd, asked, section = (state(name=name) for name in ("odd", "asked", "section"))
        there, begins = state(2, name="there"), self.value("run_begins")
        row, (low, high) = self.value("facts_row"), self._bits
        m.d.sync += [odd.eq(~odd), asked.eq(valid.bit_select(odd, 1)), section.eq(section ^ begins)]
        m.d.comb += [
            self.entry.eq(self.value("load_mode").word_select(odd, self._modes)),
            self.known.eq(there),
        ]
        for k in range(2):
            comes = Signal(name=f"comes_{k}")
            loads, later = (Signal(bits, name=f"{name}_{k}", reset_less=True)
                            for name, bits in (("loads", low), ("later", high)))  # fmt: skip
            unloads = Signal(high, name=f"unloads_{k}", reset_less=True)
            m.d.comb += comes.eq(asked & (odd != k))
            m.d.sync += there[k].eq(valid[k] & (there[k] | comes))
            with m.If(comes):
                m.d.sync += Cat(loads, later).eq(row)
            with m.If(begins & (section == k)):
                m.d.sync += unloads.eq(later)
            m.d.comb += [
                self.load_facts.word_select(k, low).eq(loads),
                self.unload_facts.word_select(k, high).eq(unloads),
            ]
        cleared(m, self.value("clear"), odd, asked, section, there)
        return m
