"""The hardware between the link ports of a board and its pins, for links on pairs of wires.

The link ports to one neighbour share a *bundle* of pairs. Each pair carries one or more links::

    word on a pair:   sync unit | frame (2 bits) | word of link a | word of link b | ..

All words of a board have equal frames, so that one frame serves all links of a pair.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from amaranth.build.res import ResourceError
from amaranth.hdl import Cat, DomainRenamer, Module, Signal, Value
from amaranth.lib.cdc import FFSynchronizer

from ....errors import InputError
from ..hardware import BoardSystem
from ..hardware.links import FRAME_BITS
from ..hardware.system import link_port_name
from .words import PairReceiver, PairSender, WordEncoding, WordTimer

__all__ = ["PhysicalLayer", "PairLinks", "bundle_ends", "count_pairs"]


class PhysicalLayer(ABC):
    """A physical layer: the encoding of words as units, and the hardware between units and pins.

    A *pair* is two wires that carry a serial signal in one direction. A *unit* is a bit or a byte
    of it. A *bundle* is all pairs to one neighbour.

    Attributes
    ----------
    resource : str
        Name of the platform's resources; each bundle of pairs has one.
    units : WordEncoding
        Encoding of a word on a pair.
    """

    resource: str
    units: WordEncoding

    @abstractmethod
    def add_common_hardware(self, m: Module, platform: Any) -> None:
        """Add the hardware that the links to all neighbours share, such as a PLL."""

    def sending_domain(self, bundle: int) -> str:
        """Return the clock domain that sends on a bundle, which is all pairs to one neighbour.

        By default each bundle has a domain of its own.
        """
        return f"{self.resource}_tx_{bundle}"

    def receiving_domain(self, bundle: int) -> str:
        """Return the clock domain that receives on a bundle, which is all pairs to one neighbour.

        By default each bundle has a domain of its own.
        """
        return f"{self.resource}_rx_{bundle}"

    @abstractmethod
    def attach_bundle(self, m: Module, bundle: int, sent: Signal, platform: Any) -> Value:
        """Connect a bundle to its pins, and return the units received on all its pairs.

        A bundle is all pairs of wires to one neighbour. A unit is a bit or a byte, of which a pair
        carries some in each cycle of a fast clock.

        Parameters
        ----------
        m : Module
            Module of the bundle.
        bundle : int
            Number of the bundle on the board.
        sent : Signal
            Units of all pairs for one cycle of the sending domain.
        platform : Platform
            Platform with the pins.
        """


class PairLinks:
    """The hardware of the links of a board on pairs of wires, with a bundle to each neighbour.

    A *pair* is two wires with a serial signal in one direction; a *bundle* is all pairs to one
    neighbour.

    Parameters
    ----------
    system : BoardSystem
        The fabric on all boards.
    board : int
        Number of the board in the system.
    layer : PhysicalLayer
        The transceivers or differential pairs that carry the bits.
    platform : Platform
        Platform of an ECP5 board, with a resource for each bundle.
    given : int, optional
        Data pairs to use in each bundle; by default as many as are needed.

    Attributes
    ----------
    units : WordEncoding
        Encoding of a word on a pair, from the layer.

    Raises
    ------
    InputError
        If the platform has too few bundles, or too few pairs for the links.
    """

    def __init__(
        self,
        system: BoardSystem,
        board: int,
        layer: PhysicalLayer,
        platform: Any,
        given: int | None = None,
    ) -> None:
        self._width, self._mhz = system.link_plan.width, platform.default_clk_frequency / 1e6
        self._layer, self.units = layer, layer.units
        self._per_pair = (self.units.data_bits - FRAME_BITS) // self._width
        ends = system.boards.far_ends[board]
        to = ([k for k, end in enumerate(ends) if end.board == other]
              for other in neighbour_boards(system, board))  # fmt: skip
        #: For each bundle, its links in the order of sending, and in the order of receiving. The
        #: latter is the order in which the neighbour sends.
        self._bundles = [(own, sorted(own, key=lambda k: ends[k].link)) for own in to]
        for number, (links, _) in enumerate(self._bundles):
            self._check_pairs(
                len(links), count_pairs(platform, layer.resource, number), number, given
            )

    def _check_pairs(self, links: int, there: int, number: int, given: int | None) -> None:
        """Check that the bundle with the number `number` has enough pairs of wires for its links.

        A bundle is all links to one neighbour. `links` is the number of its links, `there` the
        number of its data pairs on the platform, and `given` the number that the user allows, or
        None.
        """
        if not there:
            raise InputError(
                f"This board has pins for {number} neighbours, but its block has more; choose "
                "other --boards, or another board"
            )
        bits = self.units.data_bits
        if not self._per_pair:
            raise InputError(
                f"Words between boards must have at most {bits - FRAME_BITS} bits for pairs that "
                f"carry {bits} bits in a cycle of {self._mhz:g} MHz, not {self._width}; choose a "
                "smaller --width, or a lower --rate between boards"
            )
        needed, most = -(-links // self._per_pair), min(there, given or there)
        if needed > most:
            rate = links * self._width * self._mhz
            raise InputError(
                f"{links} links of {self._width} bits at {self._mhz:g} MHz ({rate:g} Mbit/s) need "
                f"{needed} pairs, {self._per_pair} links on each, but there are {most}; choose a "
                "smaller --width or more pairs (--lanes)"
            )

    def connect(self, m: Module, design: Any, platform: Any) -> None:
        """Add senders and receivers of all pairs, and connect them to the board's link ports.

        `m` is the module to which they are added, and `design` the hardware of the board.
        """
        turned = Signal(name="turned")
        m.d.sync += turned.eq(~turned)
        self._layer.add_common_hardware(m, platform)
        for number, (sent, received) in enumerate(self._bundles):
            m.submodules[f"bundle_{number}"] = bundle = Module()
            domain = self._layer.sending_domain(number)
            timer = DomainRenamer(domain)(WordTimer(self.units.cycles))
            bundle.submodules.timer = timer
            bundle.submodules.turned_known = FFSynchronizer(turned, timer.turned, o_domain=domain)
            units = self._add_senders(bundle, design, sent, timer.load, domain)
            came = self._layer.attach_bundle(bundle, number, units, platform)
            clocks = self._add_receivers(
                bundle, design, received, came, self._layer.receiving_domain(number)
            )
            if platform is not None:
                for clock in clocks:
                    platform.add_clock_constraint(clock, 1e6 * self._mhz)

    def _group_by_pair(self, links: Sequence[int]) -> list[Sequence[int]]:
        """Return the numbers of the links that share a pair of wires, one sequence for each pair.

        `links` are all links to one neighbour. Each pair carries `_per_pair` links, but the last
        pair carries those that remain.
        """
        return [links[k : k + self._per_pair] for k in range(0, len(links), self._per_pair)]

    def _add_senders(
        self, m: Module, design: Any, links: Sequence[int], load: Signal, domain: str
    ) -> Signal:
        """Add senders for the links of a bundle, and return the units to send on all its pairs.

        A *unit* is the part of a word that a pair carries at once. `load` is high when the senders
        load a word; `domain` is their clock domain. `links` are the numbers of the link ports, and
        `design` is the hardware of the board, which has these ports.
        """
        pairs, bits = self._group_by_pair(links), self.units.gear * self.units.unit
        units = Signal(bits * len(pairs), name="units")
        for pair, own in enumerate(pairs):
            sender = DomainRenamer(domain)(PairSender(self.units))
            m.submodules[f"sender_{pair}"] = sender
            names = [
                link_port_name(own[0], "tx_frame"),
                *(link_port_name(k, "tx_word") for k in own),
            ]
            m.d.comb += [
                sender.load.eq(load),
                sender.word.eq(Cat(design.signal_of_net(name) for name in names)),
                units.word_select(pair, bits).eq(sender.units),
            ]
        return units

    def _add_receivers(
        self, m: Module, design: Any, links: Sequence[int], came: Value, domain: str
    ) -> list[Signal]:
        """Add receivers for the links of a bundle, and return the clock of each pair.

        `came` has the units that have been received on all pairs. The clock rises with each word.
        `domain` is the clock domain of the receivers. `links` are the numbers of the link ports,
        and `design` is the hardware of the board, which has these ports.
        """
        bits, clocks = self.units.gear * self.units.unit, []
        for pair, own in enumerate(self._group_by_pair(links)):
            receiver = DomainRenamer(domain)(PairReceiver(self.units))
            m.submodules[f"receiver_{pair}"] = receiver
            clock = Signal(name=f"{domain}_words_{pair}", attrs={"keep": True})
            m.d.comb += [receiver.units.eq(came.word_select(pair, bits)), clock.eq(receiver.clock)]
            clocks.append(clock)
            for k, link in enumerate(own):
                word = receiver.word[FRAME_BITS + k * self._width :]
                m.d.comb += [
                    design.signal_of_net(link_port_name(link, "rx_clk")).eq(clock),
                    design.signal_of_net(link_port_name(link, "rx_frame")).eq(receiver.word),
                    design.signal_of_net(link_port_name(link, "rx_word")).eq(word),
                ]
        return clocks


def bundle_ends(system: BoardSystem, board: int) -> list[tuple[int, int]]:
    """Return the other end of each bundle: a board, and the number of the bundle there.

    A bundle is all links from `board` to one other board. For example [(1, 0), (2, 1)]: bundle 0
    leads to bundle 0 of board 1, and bundle 1 to bundle 1 of board 2.

    Parameters
    ----------
    system : BoardSystem
        The fabric on all boards.
    board : int
        Number of the board whose bundles are meant.
    """
    near = neighbour_boards(system, board)
    return [(other, neighbour_boards(system, other).index(board)) for other in near]


def neighbour_boards(system: BoardSystem, board: int) -> list[int]:
    """Return the boards to which a board has links, each once.

    They are in the order of the first link that leads to each. Their order numbers the bundles of
    the board: bundle k is all links to the k-th board of the result.

    Parameters
    ----------
    system : BoardSystem
        The fabric on all boards.
    board : int
        Number of the board whose neighbours are meant.
    """
    return list(dict.fromkeys(end.board for end in system.boards.far_ends[board]))


def count_pairs(platform: Any, name: str, number: int) -> int:
    """Return how many data pairs of wires a platform has for one bundle; 0 if it has none.

    A bundle is all pairs to one neighbour. `name` is the name of the platform's resources for
    bundles, `number` the number of the bundle.
    """
    try:
        resource = platform.lookup(name, number)
    except ResourceError:
        return 0
    pairs = {each.name: each.ios[0] for each in resource.ios}
    return min(len(pairs[name].p.names) for name in ("tx", "rx"))
