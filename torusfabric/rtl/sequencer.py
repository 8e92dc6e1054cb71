"""Sequencers: the few counters that drive a whole fabric."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from .memories import address_width, choose
from .netlist import Leaf

__all__ = ["RoundSequencer", "WaveSequencer"]


class Sequencer(Leaf):
    """What every sequencer does: run from start to done, and count the cycles.

    Members
    -------
    start : In(1)
        Starts a run, unless one is under way.
    busy : Out(1)
        High from the edge after `start` until `done`.
    done : Out(1)
        High from the end of a run until the next start.
    cycles : Out(32)
        Clock edges from the start pulse to done; counts while busy.
    """

    def __init__(self, signature):
        super().__init__(
            {
                "start": In(1),
                "busy": Out(1),
                "done": Out(1),
                "cycles": Out(32),
            }
            | signature
        )

    def run(self, m, last):
        """Keep `busy`, `done` and `cycles`; `last` is high in the last cycle of a run.

        Returns
        -------
        Value
            High in the cycle in which a start is taken.
        """
        begin = self.value("start") & ~self.busy
        with m.If(begin):
            m.d.sync += [self.busy.eq(1), self.done.eq(0), self.cycles.eq(0)]
        with m.Elif(self.busy):
            m.d.sync += self.cycles.eq(self.cycles + 1)
            with m.If(last):
                m.d.sync += [self.busy.eq(0), self.done.eq(1)]
        return begin


class WaveSequencer(Sequencer):
    """Starts a wave every so many steps, and counts what has arrived.

    A run takes ``steps * waves + 2`` cycles.

    Parameters
    ----------
    steps, waves : int

    Members
    -------
    setting : Out(1)
        What the routers do: 0 inject, 1 forward.
    tx_address : Out
        The wave to inject; `idle_address` while no run is under way.
    rx_address, rx_enable : Out
        Where to store what arrives.
    """

    def __init__(self, *, steps, waves):
        self._steps, self._waves = steps, waves
        super().__init__(
            {
                "idle_address": In(address_width(waves)),
                "setting": Out(1, init=1),
                "tx_address": Out(address_width(waves)),
                "rx_address": Out(address_width(steps * waves)),
                "rx_enable": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        steps, waves = self._steps, self._waves
        step, wave = Signal(range(max(steps, 2))), Signal(range(waves + 1))
        delay = Signal()
        last = self.rx_enable & (self.rx_address == steps * waves - 1)
        begin = self.run(m, last)
        with m.If(begin):
            m.d.sync += [self.setting.eq(0), step.eq(0), wave.eq(0), self.rx_address.eq(0)]
        with m.Elif(self.busy):
            m.d.sync += [delay.eq(1), self.rx_enable.eq(delay)]
            m.d.sync += [self.setting.eq(1), step.eq(step + 1)]
            with m.If(step == steps - 1):
                m.d.sync += [step.eq(0), wave.eq(wave + 1)]
                m.d.sync += self.setting.eq(wave > waves - 2 if waves > 1 else 1)
            with m.If(self.rx_enable):
                m.d.sync += self.rx_address.eq(self.rx_address + 1)
        with m.If(last):
            m.d.sync += [delay.eq(0), self.rx_enable.eq(0), self.setting.eq(1)]
        m.d.comb += self.tx_address.eq(Mux(self.busy, wave, self.value("idle_address")))
        return m


class RoundSequencer(Sequencer):
    """Counts the rounds, and the cycles of each.

    A run takes the sum of the durations.

    Parameters
    ----------
    durations : list of int
        Clock cycles of each round.
    windows : list of (list of int)
        Flits of the longest message of each round, of the next longest, and so on; 0 where a round
        has no such message.
    reach : int
        The longest path of all rounds, in hops.
    address_bits, word_bits : int
        Bits of a bank's address, and of the word counter.
    arrivals : sequence of (int, int)
        Pairs of a round and the hops of a path, for whoever wants to be told.

    Members
    -------
    round : Out
    word : Out
        The place of the flit that is read in this cycle in its message; `idle_address` while no run
        is under way.
    phase : Out(windows * (reach + 2))
        For each window, bit k: whether a flit within the window was read k cycles ago.
    arrivals : Out, if there are any
        Bit k: whether a flit of a longest message arrives over a path of arrival k.
    """

    def __init__(self, *, durations, windows, reach, address_bits, word_bits, arrivals=()):
        self._durations, self._windows, self._reach = durations, windows, reach
        self._arrivals = arrivals
        super().__init__(
            {
                "idle_address": In(address_bits),
                "round": Out(range(max(len(durations), 2))),
                "word": Out(word_bits),
                "phase": Out(len(windows) * (reach + 2)),
            }
            | ({"arrivals": Out(len(arrivals))} if arrivals else {})
        )

    def elaborate(self, platform):
        m = Module()
        count = Signal(range(max(self._durations)))
        duration = self._per_round(self._durations)
        end = count == duration - 1
        final = self.round == len(self._durations) - 1
        begin = self.run(m, end & final)
        with m.If(begin):
            m.d.sync += [self.round.eq(0), count.eq(0)]
        with m.Elif(self.busy):
            m.d.sync += count.eq(count + 1)
            with m.If(end):
                m.d.sync += [count.eq(0), self.round.eq(self.round + 1)]
        for number, window in enumerate(self._windows):
            phase = self.phase[number * (self._reach + 2) :][: self._reach + 2]
            # Where a round has no such message nobody looks, so that any other length will do.
            lengths = [flits or max(window) for flits in window]
            sending = phase[0] & (count != self._per_round(lengths) - 1)
            with m.If(begin):
                m.d.sync += phase.eq(1)
            with m.Elif(self.busy):
                m.d.sync += phase.eq(Mux(end, ~final, Cat(sending, phase)))
        m.d.comb += self.word.eq(Mux(self.busy, count, self.value("idle_address")))
        for number, (at, hops) in enumerate(self._arrivals):
            m.d.comb += self.arrivals[number].eq((self.round == at) & self.phase[hops + 1])
        return m

    def _per_round(self, values):
        """A value that depends on the round."""
        if len(set(values)) == 1:
            return Const(values[0])
        return choose([Const(v, max(values).bit_length()) for v in values], self.round)
