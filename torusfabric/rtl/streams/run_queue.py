"""The runs that wait to be unloaded at a node, and the one that is.

A run is claimed from its begin until its last word leaves memory; it is complete from its end until
its last word is asked for. What a run brings is known before its end.
"""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Mux, Signal, Value

from ..cascade import keeper
from ..leaf import Leaf
from ..registers import apart
from .clearing import cleared, state, tally
from .sections import Sections

__all__ = ["RunQueue"]


class RunQueue:
    """Counts the runs of an unloader.

    Parameters
    ----------
    m : Module
    leaf : Leaf
        With the inputs `clear`, `run_begins` and `run_ends`.
    sections : Sections
        Of memories.

    Attributes
    ----------
    run : Signal
        The number of the run that is unloaded, or will be next.
    there : Signal
        Whether there are words of it that were not asked for yet.
    skips : Signal
        High in the cycle in which a run is passed over that has brought nothing.
    """

    def __init__(self, m: Module, leaf: Leaf, sections: Sections) -> None:
        self._m, self._leaf, self._sections = m, leaf, sections
        self.run = state(sections.number_bits, name="run")
        self.there, self.skips = state(name="there"), state(name="skips")

    @property
    def section(self) -> Value:
        """Where the words of the run lie."""
        return self._sections.of(self.run)

    def following(self, finishes: Value) -> Value:
        """Where the next word lies, given whether this one is the last of its run."""
        return self._sections.following(self.section, (self.there & finishes) | self.skips)

    def add_turns(
        self, *, finishes: Value, goes_on: Value, at_rest: Value, brought: Sequence[Value]
    ) -> None:
        """Add what goes on from run to run.

        Parameters
        ----------
        finishes : Value
            Whether a word that is there is the last of its run.
        goes_on : Value
            Whether it is asked for. This comes late.
        at_rest : Value
            Whether no word is there, or on its way to memory: no run is passed over before.
        brought : sequence of Value
            Whether the run in each section brings anything.
        """
        m, there, ends, clear = self._m, self.there, self._value("run_ends"), self._value("clear")
        # The wires of what comes late are long: nothing but the last table is behind them.
        keep, turns = keeper(m, 1), there | self.skips
        passes = (keep(there & finishes) & goes_on) | self.skips
        complete, _ = tally(m, up=ends, down=passes, clear=clear, name="complete")
        known = Signal(self._sections.count, name="brought")
        # Other nodes may hold the same.
        held = apart(m, Cat(*brought), name="brought_here", alone=self._leaf.alone)
        m.d.comb += known.eq(held)
        this, following = (
            known.bit_select(section, 1)
            for section in (self.section, self._sections.following(self.section))
        )
        stays = keep(there & ~(finishes & goes_on))
        brings = keep(Mux(turns, following, this))
        waits = keep(Mux(turns, complete[1], complete.any()))
        m.d.sync += [
            there.eq(stays | (brings & (waits | ends))),
            self.skips.eq(complete.any() & ~this & at_rest & ~self.skips),
        ]
        with m.If(passes):
            m.d.sync += self.run.eq(self.run + 1)
        cleared(m, clear, self.run, there, self.skips)

    def add_claims(self, last_asked: Value, goes_on: Value) -> Value:
        """Add what counts the runs that are claimed.

        Parameters
        ----------
        last_asked : Value
            Whether the last word of a run is asked for.
        goes_on : Value
            Whether words go on. This comes late.

        Returns
        -------
        Value
            Whether there is room for what another run brings.
        """
        m, clear = self._m, self._value("clear")
        # The last word of a run leaves its memory.
        leaves = (goes_on & last_asked) | self.skips
        begins = self._value("run_begins")
        claimed, _ = tally(m, up=begins, down=leaves, clear=clear, name="claimed")
        # There are never more than there are buffers.
        return ~claimed[1] if self._sections.two else ~claimed.all()

    def _value(self, name: str) -> Value:
        """What drives an input."""
        return self._leaf.value(name)
