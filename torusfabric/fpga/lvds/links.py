"""The link ports of a board on differential pairs, between the fabric and pins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.build.res import ResourceError
from amaranth.hdl import Cat, DomainRenamer, Module, Signal
from amaranth.lib.cdc import FFSynchronizer

from ...errors import InputError
from ...rtl.boards import BoardSystem
from ...rtl.boards.attach import link_port
from ...rtl.boards.symbols import FRAME_BITS
from .pairs import GEAR, PairReceiver, PairSender, WordTimer
from .pins import SENDING, add_clocks, receive_pairs, receiving, send_pairs

__all__ = ["LvdsLinks"]

#: Mbit/s of a pair with gears of four bits, by the speed grade of an ECP5: its data sheet,
#: FPGA-DS-02012, external switching characteristics of GDDRX2.
RATES = {"6": 624, "7": 700, "8": 800}

#: The least cycles of the faster clock in one of the fabric.
LEAST_CYCLES = 5


class LvdsLinks:
    """Pairs for the links of a board: a bundle to each neighbour, of some for data and a clock.

    Parameters
    ----------
    board : int
        The number of the board in the system.
    platform : Platform
        Of an ECP5, with a resource ``lvds`` for each bundle.
    given : int, optional
        Pairs for data in each bundle; by default as many as are needed.

    Raises
    ------
    InputError
        If the links do not go on so many pairs, or the platform has none.
    """

    def __init__(
        self, system: BoardSystem, board: int, platform: Any, given: int | None = None
    ) -> None:
        self._width, self._mhz = system.fabric.width, platform.default_clk_frequency / 1e6
        rate = RATES.get(getattr(platform, "speed", ""), 0)
        if not rate or not _pairs_of(platform, 0):
            raise InputError("Board for lvds must be an ECP5 with a resource lvds, not without")
        self.cycles = int(rate // (GEAR * self._mhz))
        if self.cycles < LEAST_CYCLES:
            raise InputError(
                f"Clock of the board must be at most {rate / GEAR / LEAST_CYCLES:g} MHz for pairs "
                f"of {rate} Mbit/s, not {self._mhz:g}"
            )
        self.bits = GEAR * self.cycles
        self.per_pair = (self.bits - 1) // (self._width + FRAME_BITS)
        ends = system.boards.ends[board]
        to = {end.board: list[int]() for end in ends}
        for link, end in enumerate(ends):
            to[end.board].append(link)
        #: Of each bundle, the links that it sends, and those that it receives: as the other sends.
        self.bundles = [(own, sorted(own, key=lambda k: ends[k].link)) for own in to.values()]
        for number, (links, _) in enumerate(self.bundles):
            self._check(len(links), _pairs_of(platform, number), number, given)

    def _check(self, links: int, there: int, number: int, given: int | None) -> None:
        """See that there are pairs for some links."""
        if not there:
            raise InputError(f"Neighbours of the board must be at most {number}, not more")
        word, rate = self._width + FRAME_BITS, self.bits * self._mhz
        if not self.per_pair:
            raise InputError(
                f"Width must be at most {self.bits - 1 - FRAME_BITS} bits for a pair of {rate:g} "
                f"Mbit/s at {self._mhz:g} MHz, not {self._width}"
            )
        needed, most = -(-links // self.per_pair), min(there, given or there)
        if needed > most:
            raise InputError(
                f"Pairs must be at least {needed} for {links} links of {word} bits at "
                f"{self._mhz:g} MHz ({links * word * self._mhz:g} Mbit/s; a pair of {rate:g} takes "
                f"{self.per_pair}), not {most}"
            )

    def connect(self, m: Module, design: Any, platform: Any) -> None:
        """Connect the link ports of a design to pins."""
        edge, late = add_clocks(m, self.cycles)
        turned = Signal(name="turned")
        m.d.sync += turned.eq(~turned)
        m.submodules.timer = timer = DomainRenamer(SENDING)(WordTimer(self.cycles))
        m.submodules.turned_known = FFSynchronizer(turned, timer.turned, o_domain=SENDING)
        for number, (sent, received) in enumerate(self.bundles):
            m.submodules[f"bundle_{number}"] = bundle = Module()
            port = platform.request("lvds", number, dir="-")
            nibbles = self._sends(bundle, design, sent, timer.load)
            send_pairs(bundle, port, nibbles, edge, late)
            self._receives(bundle, design, received, port, platform, number)

    def _by_pair(self, links: Sequence[int]) -> list[Sequence[int]]:
        """The links of each pair."""
        return [links[k : k + self.per_pair] for k in range(0, len(links), self.per_pair)]

    def _sends(self, m: Module, design: Any, links: Sequence[int], load: Signal) -> Signal:
        """Send the words of some links; returns the bits of all pairs."""
        pairs = self._by_pair(links)
        nibbles = Signal(GEAR * len(pairs), name="nibbles")
        for pair, own in enumerate(pairs):
            sender = DomainRenamer(SENDING)(PairSender(self.bits))
            m.submodules[f"sender_{pair}"] = sender
            names = [link_port(link, name) for link in own for name in ("tx_word", "tx_frame")]
            m.d.comb += [
                sender.load.eq(load),
                sender.word.eq(Cat(design.net(name) for name in names)),
                nibbles[GEAR * pair : GEAR * (pair + 1)].eq(sender.nibble),
            ]
        return nibbles

    def _receives(
        self, m: Module, design: Any, links: Sequence[int], port: Any, platform: Any, number: int
    ) -> None:
        """Receive the words of some links."""
        pairs, domain = self._by_pair(links), receiving(number)
        nibbles, clock = receive_pairs(m, port, len(pairs), domain)
        platform.add_clock_constraint(clock, 2e6 * self.cycles * self._mhz)
        for pair, own in enumerate(pairs):
            receiver = DomainRenamer(domain)(PairReceiver(self.bits))
            m.submodules[f"receiver_{pair}"] = receiver
            m.d.comb += receiver.nibble.eq(nibbles[GEAR * pair : GEAR * (pair + 1)])
            at = 0
            for link in own:
                m.d.comb += design.net(link_port(link, "rx_clk")).eq(receiver.clock)
                for name in ("rx_word", "rx_frame"):
                    net = design.net(link_port(link, name))
                    m.d.comb += net.eq(receiver.word[at : at + len(net)])
                    at += len(net)


def _pairs_of(platform: Any, number: int) -> int:
    """The pairs for data of a bundle; 0 if there is none."""
    try:
        resource = platform.lookup("lvds", number)
    except ResourceError:
        return 0
    pairs = {each.name: each.ios[0] for each in resource.ios}
    return min(len(pairs[name].p.names) for name in ("tx", "rx"))
