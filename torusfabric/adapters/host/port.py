"""`Host`, the module of the host port, and the tree by which a read word returns to the port.

`HostFront` adds both to a fabric by `add_host`. A write and a read pass these pipeline stages; F is
the latency of the finder, A the cycles of an access at the node:

====================================  ==================  =================
stage                                 write               read
====================================  ==================  =================
input register, division, look-up     F                   F
choice of the form of the last run                        1 (several forms)
register of the group of nodes        1                   1
register at the node, memory          2                   A
OR tree back to the port                                  levels of the tree
====================================  ==================  =================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from itertools import groupby
from operator import or_
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib.wiring import In, Out

from ...program.timing import DISTRIBUTION, STORE, WRITE
from ...rtl.arrays import NodeGroups, Slice
from ...rtl.core.memory_port import suffix
from ...rtl.distribution import RADIX, merge_levels
from ...rtl.memories import address_width, choose, look_up
from ...rtl.modules import delayed, pulsed
from ...rtl.netlist import Leaf, Part, Parts, Role, add_single
from ...topology import IntArray
from .finders import ENTRY, Finder, HostLayout, finder_of, sent_finders

if TYPE_CHECKING:
    from ...rtl.core.core import CoreBuilder

__all__ = ["Host", "ReadMerge", "add_host", "add_host_port", "add_read_tree"]


assert WRITE == ENTRY + DISTRIBUTION + STORE, "a write is in a memory when a run may read it"


class ReadMerge(Leaf):
    """A node of the read tree: a registered OR of several words, at most one of which is not 0.

    Parameters
    ----------
    inputs : int
        Number of words, at most `RADIX`.
    width : int
        Bits of a word.

    Members
    -------
    data : In(inputs * width)
        The words, the first in the lowest bits.
    word : Out(width)
        Their OR, one cycle later.
    """

    def __init__(self, inputs: int, width: int) -> None:
        self._width = width
        super().__init__({"data": In(inputs * width), "word": Out(width)})
        self.word = Signal(width, reset_less=True, name="word")

    def elaborate(self, platform: object) -> Module:
        """Build the combination and its register."""
        m = Module()
        m.d.sync += self.word.eq(reduce(or_, self.words("data", self._width)))
        return m


class Host(Leaf):
    """Module that translates accesses of the host into reads and writes of node memories.

    A write takes `program.timing.WRITE` edges if its address needs no look-up, so that a run which
    begins with the next edge reads the written word. A look-up of the send map adds cycles. If
    these are too many, `settling` delays the begin of a run. With several forms, a word is written
    to the memories of every send map, because the form is not known before the start.

    A read takes `read_latency` edges. The host may read with every edge while no run is under way.
    With several forms, received words are read from where the last run stored them.

    A write is ignored while a run is under way, in the cycle of a start, and at an address beyond
    the words of a send map. `Host` then does not assert the write enable of this map.

    Parameters
    ----------
    views : sequence of Finder
        Finders of received words, one for each form.
    writes : sequence of Finder
        Finders of sent words, one for each different send map.
    width : int
        Bits of a word, which is one beat of flits.
    address_bits : int
        Bits of an address of the node memories.
    answer : int
        Cycles from a read at the nodes to its word.
    hold : int
        Cycles after a write in which no run may begin, see `HostFront`.
    blocks : ndarray of int, shape (blocks, nodes), optional
        Node numbers of each block, if the fabric is one block of nodes on one of several boards.

    Members
    -------
    host_we, host_node, host_addr, host_wdata : In
        The host port.
    start, busy : In(1)
        The start of a run, and high while one is under way. Both close the port to writes.
    block : In
        The number of this block; only with several blocks.
    form : In
        The form of the last run; only with several forms.
    write_enable : Out
        One write enable for each group of `NodeGroups`. Send maps with other numbers of words have
        enables of their own, ``write_enable_k``; see `enable_numbers`.
    write_node : Out
        The position within its group of the node that is written.
    write_data : Out
        The word, one cycle after enable and address. In this cycle nodes decode the memory.
    write_bank, write_address : Out
        Memory and address by the first send map; by the others, ``write_bank_k`` and
        ``write_address_k``.
    settling : Out(1)
        High in the `hold` cycles after a write; only if `hold` is not 0.
    sampled_root : In
        The root of the last run; only if the locations of received words depend on the root.
    read_node, read_bank, read_address : Out
        A read. Finders may add further members, see `Finder`.

    Examples
    --------
    >>> import torusfabric as tf
    >>> fabric = tf.Fabric(tf.compile(tf.plan(tf.Torus(3, 3), "broadcast")), width=8)
    >>> host = fabric.netlist.modules["host"]()
    >>> host.read_latency == fabric.read_latency, len(host.host_wdata)
    (True, 8)
    """

    def __init__(
        self,
        views: Sequence[Finder],
        writes: Sequence[Finder],
        *,
        width: int,
        address_bits: int,
        answer: int,
        hold: int = 0,
        blocks: IntArray | None = None,
    ) -> None:
        self._hold = hold
        self._views, self._writes, self._blocks = tuple(views), tuple(writes), blocks
        first = views[0].layout
        nodes = first.nodes if blocks is None else blocks.shape[1]
        self._groups = NodeGroups(nodes)
        self._answer = answer + len(merge_levels(nodes))
        #: Number of words of the send maps that share each write enable.
        self._ranges = [*dict.fromkeys(way.layout.send_words for way in writes)]
        by_root = any(view.by_root for view in views)
        super().__init__(
            {
                "host_we": In(1),
                "host_node": In(address_width(nodes)),
                "host_addr": In(first.address_bits),
                "host_wdata": In(width),
                "start": In(1),
                "busy": In(1),
                "write_node": Out(self._groups.place_bits),
                "write_data": Out(width),
                "read_node": Out(address_width(nodes)),
                "read_bank": Out(max(view.bank_bits for view in views)),
                "read_address": Out(address_bits),
            }
            | {
                f"write_enable{suffix(k)}": Out(self._groups.count)
                for k in range(len(self._ranges))
            }
            | {f"write_bank{suffix(k)}": Out(way.bank_bits) for k, way in enumerate(writes)}
            | {f"write_address{suffix(k)}": Out(address_bits) for k in range(len(writes))}
            | {
                "block": In(0 if blocks is None else address_width(len(blocks))),
                "form": In(address_width(len(views)) * self._choosing),
                "sampled_root": In(first.root_bits * by_root),
                "settling": Out(int(hold > 0)),
            }
            | {name: each for view in views for name, each in view.members.items()}
        )

    @property
    def _choosing(self) -> int:
        """Cycles of the multiplexer that selects by the form of the last run: 0 for one form."""
        return int(len(self._views) > 1)

    @property
    def _locating(self) -> int:
        """Cycles from a read at the port until its memory and address leave for the nodes."""
        return max(view.latency for view in self._views) + self._choosing

    @property
    def write_cycles(self) -> int:
        """Cycles from a write at the port until it leaves for the nodes."""
        return max(way.latency for way in self._writes)

    @property
    def read_latency(self) -> int:
        """Clock edges from an address to its data: look-up, group registers, node, read tree."""
        on_the_way = DISTRIBUTION - 1  # the last register is in the node, and counted by `answer`
        return self._locating + on_the_way + self._answer

    def elaborate(self, platform: object) -> Module:
        """Build the pipelines of reads and writes."""
        m = Module()
        node = self._number(m)
        self._read(m, node)
        self._write(m, node)
        return m

    def _number(self, m: Module) -> Value:
        """Return the number, in the whole network, of the node that the host addresses."""
        node = self.value("host_node")
        if self._blocks is None:
            return node
        padding = (1 << len(node)) - self._blocks.shape[1]
        numbers = np.pad(self._blocks, ((0, 0), (0, padding)))
        found = look_up(numbers.ravel().tolist(), Cat(node, self.value("block")))
        number = Signal(len(found), name="node")
        m.d.comb += number.eq(found)
        return number

    def _read(self, m: Module, node: Value) -> None:
        """Look up the read address in every form, and select the result for the last run's form."""
        found = []
        for number, view in enumerate(self._views):
            latency = self._locating - self._choosing
            found.append(self._find(m, f"read{suffix(number)}", view, latency, node))
        bank, address = found[0]
        if self._choosing:
            # A register for the long wires from the sequencer. Its delay does no harm, because no
            # host reads while the form changes.
            form = delayed(m, self.value("form"), 1)
            bank, address = (choose(of_forms, form) for of_forms in zip(*found, strict=True))
        m.d.comb += [
            self.read_node.eq(delayed(m, self.value("host_node"), self._locating)),
            self.read_bank.eq(delayed(m, bank, self._choosing)),
            self.read_address.eq(delayed(m, address, self._choosing)),
        ]

    def _find(
        self, m: Module, name: str, finder: Finder, latency: int, node: Value
    ) -> tuple[Value, Value]:
        """Return memory and address of the addressed word, delayed to `latency` cycles in all."""
        wait = latency - finder.latency
        address = delayed(m, self.value("host_addr")[: finder.layout.address_bits - 1], wait)
        return finder.find(m, self, name, address, delayed(m, node, wait))

    def _write(self, m: Module, node: Value) -> None:
        """Look up the write address in every send map, and delay node, enable and data to match."""
        latency = self.write_cycles
        for number, way in enumerate(self._writes):
            name = f"write{suffix(number)}"
            bank, address = self._find(m, name, way, latency, node)
            m.d.comb += [
                getattr(self, f"write_bank{suffix(number)}").eq(bank),
                getattr(self, f"write_address{suffix(number)}").eq(address),
            ]
        asked, bits = delayed(m, self.value("host_node"), latency - 1), self._groups.place_bits
        place, group = asked[:bits], asked[bits:]
        writes = self.value("host_we") & ~self.value("start") & ~self.value("busy")
        longest = max(self._ranges)
        for number, words in enumerate(self._ranges):
            written = Signal(name=f"written{suffix(number)}")
            m.d.comb += written.eq(writes & _is_below(self.value("host_addr"), words))
            early = _line(m, written, latency - 1, name="write_enable_early")
            if self._hold and words == longest:
                m.d.sync += self.settling.eq(Cat(early[: self._hold]).any())
            enable = self.pulses(m, early[-1], group)
            m.d.comb += getattr(self, f"write_enable{suffix(number)}").eq(enable)
        m.d.comb += [
            self.write_node.eq(delayed(m, place, 1)),
            self.write_data.eq(delayed(m, self.value("host_wdata"), latency + 1)),
        ]

    def pulses(self, m: Module, pulse: Value, group: Value) -> Value:
        """Return the registered write enables: `pulse` at the bit of `group`, one cycle later."""
        chosen = Cat(pulse & (group == number) for number in range(self._groups.count))
        return pulsed(m, chosen, 1, name="write_enable_now")


def _line(m: Module, pulse: Value, cycles: int, *, name: str) -> list[Value]:
    """Return a shift register: the pulse itself, then the pulse delayed by 1 to `cycles` cycles."""
    line = [pulse]
    for _ in range(cycles):
        line.append(pulsed(m, line[-1], 1, name=name))
    return line


def _is_below(value: Value, limit: int) -> Value:
    """Return True if a value is below a constant.

    Why not ``value < limit``: runs of equal bits of the limit are compared with all zeros or all
    ones, which needs no carry chain, and few LUTs.
    """
    below: Value = Const(1)
    low = (limit & -limit).bit_length() - 1
    for bit, run in groupby(limit - 1 >> k & 1 for k in range(low, len(value))):
        part = value[low : low + len([*run])]
        below = (part != 2 ** len(part) - 1) | below if bit else (part == 0) & below
        low += len(part)
    return below


def add_host(
    build: CoreBuilder, layouts: Sequence[HostLayout], outside: str = ""
) -> tuple[int, list[Finder]]:
    """Add the host port and the read tree to a netlist.

    Parameters
    ----------
    build : CoreBuilder
        The netlist under construction.
    layouts : sequence of HostLayout
        The host addresses of each form.
    outside : str
        Prefix of the nets `start` and `busy` that close the port to writes.

    Returns
    -------
    read_latency : int
        Clock edges from an address to its data.
    finders : list of Finder
        The finder of received words for each form, then that of sent words for each send map.
    """
    program = build.program
    forms, writes = range(len(program.forms)), sent_finders(program, layouts)
    views = [finder_of(layouts[form], program, form, received=True) for form in forms]
    given: dict[str, Parts] = {}
    if any(view.by_root for view in views):
        given["sampled_root"] = (Part("sampled_root", 0, layouts[0].root_bits),)
    if program.several:
        given["form"] = (Part("run_form", 0, address_width(len(forms))),)
    make = partial(
        Host,
        views,
        writes,
        width=build.word,
        address_bits=build.address_bits,
        answer=build.answer,
        hold=build.hold,
        blocks=build.cut.nodes if build.cut else None,
    )
    return add_host_port(build, make, given, outside), [*views, *writes]


def add_host_port(
    build: CoreBuilder,
    make: Callable[[], Host],
    given: Mapping[str, Parts] = MappingProxyType({}),
    outside: str = "",
) -> int:
    """Add a host port and the read tree to a netlist, and return the read latency in clock edges.

    Parameters
    ----------
    build : CoreBuilder
        The netlist under construction.
    make : function of () -> Host
        Makes the module.
    given : mapping of str to Parts
        Nets for the inputs of the module other than the port, `start`, `busy` and `block`.
    outside : str
        Prefix of the nets `start` and `busy` that close the port to writes.
    """
    host, names = make(), ("host_we", "host_node", "host_addr", "host_wdata")
    inputs: dict[str, Parts] = {
        name: build.add_input(name, len(getattr(host, name))) for name in names
    }
    inputs |= {name: (Part(outside + name, 0, 1),) for name in ("start", "busy")}
    if "block" in host.signature.members:
        inputs["block"] = build.add_input("block", len(host.block))
    build.from_host.extend(add_single(build, "host", Role.HOST, make, {**inputs, **given}))
    add_read_tree(build)
    build.add_output("host_rdata", build.word)
    return host.read_latency


def add_read_tree(build: CoreBuilder) -> None:
    """Add the read tree, whose root is `host_rdata`: nodes that are not addressed contribute 0."""
    width, words = build.word, build.nodes
    net, levels = build.read_net, len(merge_levels(build.nodes))
    for level in range(levels):
        whole, rest = divmod(words, RADIX)
        last = level == levels - 1
        name = "host_rdata" if last else f"read_{level}_{{}}"
        for size, numbers in ((RADIX, np.arange(whole)), (rest, np.array([whole]))):
            if not size or not len(numbers):
                continue
            module = f"read_merge_{size}"
            build.add_module(module, partial(ReadMerge, size, width), role=Role.READ_TREE)
            data = tuple(Slice(net, numbers * RADIX + k, 0, width) for k in range(size))
            build.add_array(
                f"read_merge_{level}_{{}}",
                module,
                numbers,
                inputs={"data": data},
                outputs={"word": (name, width)},
                scope=f"tree_{level}",
            )
        net, words = name, whole + (rest > 0)
