"""`HostTranslator`, the module of the host port, and the tree by which a read word returns to it.

`HostFront` adds both to a fabric by `add_host`. The table counts the cycles of a write and of a
read. F is the latency of the slowest finder, A the cycles of a read at the node. The nodes of a
fabric are divided into sets whose nodes share a register, so that wires stay short. In this module,
these sets are called *groups* (`NodeGroups`); they are not the groups of a collective. The *bank*
of a word is the number of its memory at the node:

====================================  ==================  =================
stage                                 write               read
====================================  ==================  =================
input register, division, look-up     F                   F
selection by the form of the last run                     1 (several forms)
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
from ...rtl.core.memory_port import number_suffix
from ...rtl.distribution import READ_TREE_RADIX, tree_level_sizes
from ...rtl.memories import address_width, choose_value, look_up
from ...rtl.modules import delay_pulse, delay_value
from ...rtl.netlist import Leaf, Part, Parts, Role, add_single_instance
from ...topology import IntArray
from .finders import ENTRY_CYCLES, Finder, HostLayout, make_finder, sent_finders

if TYPE_CHECKING:
    from ...rtl.core.core import CoreBuilder

__all__ = ["HostTranslator", "ReadMerge", "add_host", "add_host_port", "add_read_tree"]


assert WRITE == ENTRY_CYCLES + DISTRIBUTION + STORE, "a write is in a memory when a run may read it"


class ReadMerge(Leaf):
    """Module at a branch of the read tree: a registered OR of words, of which at most one is not 0.

    Parameters
    ----------
    inputs : int
        Number of words, at most `READ_TREE_RADIX`.
    width : int
        Bits of a word.

    Members
    -------
    data : In(inputs * width)
        The words, the first in the lowest bits.
    word : Out(width)
        The OR of the words, one cycle later.
    """

    def __init__(self, inputs: int, width: int) -> None:
        self._width = width
        super().__init__({"data": In(inputs * width), "word": Out(width)})
        self.word = Signal(width, reset_less=True, name="word")

    def elaborate(self, platform: object) -> Module:
        """Build the OR of the words, and its register."""
        m = Module()
        m.d.sync += self.word.eq(reduce(or_, self.input_words("data", self._width)))
        return m


class HostTranslator(Leaf):
    """Module that translates accesses of the host into reads and writes of node memories.

    A *finder* translates the address of a word at the host port into a memory of the node and the
    address in it. The *send map* of a form gives this location for each word to send. A write takes
    `program.timing.WRITE` edges if its address needs no look-up in a send map, so that a run which
    begins with the next edge reads the written word. A look-up adds cycles. If it takes so long
    that the run would read too early, `settling` delays the begin of the run. With several forms, a
    word is written to the memories of every send map, because the form is not known before the
    start.

    A read takes `read_latency` edges. The host may read with every edge while no run is under way.
    With several forms, received words are read from where the last run stored them.

    A write is ignored while a run is under way, and in the cycle of a start. If the address is
    beyond the last word of a send map, the write is ignored for this send map: its write enable
    stays low.

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
        Cycles from the address of a read at a node until the node outputs the word.
    hold : int
        Cycles after a write in which no run may begin; see `HostFront._hold_cycles`.
    blocks : ndarray of int, shape (boards, nodes of a board), optional
        Number in the torus of each node of each board, if the module serves one of several boards.
        The input `block` is then the number of the board.

    Members
    -------
    host_we, host_node, host_addr, host_wdata : In
        The host port.
    start, busy : In(1)
        The start of a run, and high while one is under way. Both close the port to writes.
    block : In
        The number of this board; only with `blocks`.
    form : In
        The form of the last run; only with several forms.
    write_enable : Out
        One write enable for each group of `NodeGroups`: a set of nodes that share a register, not
        the group of a collective. It serves the first send map and all send maps with as many
        words. Send maps with other numbers of words have enables of their own, ``write_enable_k``;
        see `write_enable_numbers`.
    write_node : Out
        The position within its group of the node that is written.
    write_data : Out
        The word, one cycle after enable and address. Why later: between both cycles the node
        decodes the bank into the write enable of a memory.
    write_bank, write_address : Out
        Memory and address by the first send map; by the others, ``write_bank_k`` and
        ``write_address_k``.
    settling : Out(1)
        High in the `hold` cycles after a write; only if `hold` is not 0.
    sampled_root : In
        The root of the last run; only if the locations of received words depend on the root.
    read_node, read_bank, read_address : Out
        Node, memory and address of a read. Finders may add further members, see `Finder`.

    Examples
    --------
    In a fabric, the module adds all cycles of the read latency; a word has the 8 bits of a flit.

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
        self._answer = answer + len(tree_level_sizes(nodes))
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
                "write_node": Out(self._groups.position_bits),
                "write_data": Out(width),
                "read_node": Out(address_width(nodes)),
                "read_bank": Out(max(view.bank_bits for view in views)),
                "read_address": Out(address_bits),
            }
            | {
                f"write_enable{number_suffix(k)}": Out(self._groups.n_groups)
                for k in range(len(self._ranges))
            }
            | {f"write_bank{number_suffix(k)}": Out(way.bank_bits) for k, way in enumerate(writes)}
            | {f"write_address{number_suffix(k)}": Out(address_bits) for k in range(len(writes))}
            | {
                "block": In(0 if blocks is None else address_width(len(blocks))),
                "form": In(address_width(len(views)) * self._select_cycles),
                "sampled_root": In(first.root_bits * by_root),
                "settling": Out(int(hold > 0)),
            }
            | {name: each for view in views for name, each in view.members.items()}
        )

    @property
    def _select_cycles(self) -> int:
        """Cycles to select one form's translation of an address; 0 for a program with one form."""
        return int(len(self._views) > 1)

    @property
    def _locate_cycles(self) -> int:
        """Cycles from the host address of a read until memory and address are sent to nodes."""
        return max(view.latency for view in self._views) + self._select_cycles

    @property
    def write_cycles(self) -> int:
        """Cycles from a write at the host port until it is sent to the nodes."""
        return max(way.latency for way in self._writes)

    @property
    def read_latency(self) -> int:
        """Clock edges from a host address to its word: finder, group register, node, read tree."""
        on_the_way = DISTRIBUTION - 1  # the last register is in the node, and counted by `answer`
        return self._locate_cycles + on_the_way + self._answer

    def elaborate(self, platform: object) -> Module:
        """Build the pipelines of reads and writes."""
        m = Module()
        node = self._network_node(m)
        self._add_reads(m, node)
        self._add_writes(m, node)
        return m

    def _network_node(self, m: Module) -> Value:
        """Return the number, in the whole torus, of the node that the host addresses.

        On one of several boards, `host_node` counts only the nodes of this board; a table with the
        boards' nodes then gives the number.
        """
        node = self.input_value("host_node")
        if self._blocks is None:
            return node
        padding = (1 << len(node)) - self._blocks.shape[1]
        numbers = np.pad(self._blocks, ((0, 0), (0, padding)))
        found = look_up(numbers.ravel().tolist(), Cat(node, self.input_value("block")))
        number = Signal(len(found), name="node")
        m.d.comb += number.eq(found)
        return number

    def _add_reads(self, m: Module, node: Value) -> None:
        """Add the pipeline that sends node, memory and address of each read to the nodes.

        Every form has a finder, which translates the host address into memory and address. The
        result of the finder for the form of the last run is selected. `node` is the number, in the
        whole torus, of the node that is read.
        """
        found = []
        for number, view in enumerate(self._views):
            latency = self._locate_cycles - self._select_cycles
            found.append(self._locate_word(m, f"read{number_suffix(number)}", view, latency, node))
        bank, address = found[0]
        if self._select_cycles:
            # A register for the long wires from the sequencer. Its delay does no harm, because no
            # host reads while the form changes.
            form = delay_value(m, self.input_value("form"), 1)
            bank, address = (choose_value(of_forms, form) for of_forms in zip(*found, strict=True))
        m.d.comb += [
            self.read_node.eq(delay_value(m, self.input_value("host_node"), self._locate_cycles)),
            self.read_bank.eq(delay_value(m, bank, self._select_cycles)),
            self.read_address.eq(delay_value(m, address, self._select_cycles)),
        ]

    def _locate_word(
        self, m: Module, name: str, finder: Finder, latency: int, node: Value
    ) -> tuple[Value, Value]:
        """Add a finder, and return the memory and address that it finds for the host address.

        Both are valid `latency` cycles after the host address. If the finder needs fewer cycles,
        its inputs are delayed by the difference. `name` is a prefix for the names of its ROMs.
        `node` is the number of the addressed node, valid together with the host address.
        """
        wait = latency - finder.latency
        address = delay_value(
            m, self.input_value("host_addr")[: finder.layout.address_bits - 1], wait
        )
        return finder.add_pipeline(m, self, name, address, delay_value(m, node, wait))

    def _add_writes(self, m: Module, node: Value) -> None:
        """Add the pipeline that sends location, write enables and word of a write to the nodes.

        Every send map (the locations of the words to send in some forms) has a finder, which
        translates the host address into memory and address. Write enables and word are delayed by
        the cycles of the slowest finder. `node` is the number, in the whole torus, of the node that
        is written.
        """
        latency = self.write_cycles
        for number, way in enumerate(self._writes):
            name = f"write{number_suffix(number)}"
            bank, address = self._locate_word(m, name, way, latency, node)
            m.d.comb += [
                getattr(self, f"write_bank{number_suffix(number)}").eq(bank),
                getattr(self, f"write_address{number_suffix(number)}").eq(address),
            ]
        asked, bits = (
            delay_value(m, self.input_value("host_node"), latency - 1),
            self._groups.position_bits,
        )
        place, group = asked[:bits], asked[bits:]
        # Synthesis keeps `writes` and `below`. Why: a write enable is then a LUT of these two bits
        # and the number of the group, two levels behind the ports.
        writes = Signal(name="writes", attrs={"keep": 1})
        m.d.comb += writes.eq(
            self.input_value("host_we") & ~self.input_value("start") & ~self.input_value("busy")
        )
        longest = max(self._ranges)
        for number, words in enumerate(self._ranges):
            below = Signal(name=f"below{number_suffix(number)}", attrs={"keep": 1})
            m.d.comb += below.eq(_is_below(self.input_value("host_addr"), words))
            early = _shift_register(m, writes & below, latency - 1, name="write_enable_early")
            if self._hold and words == longest:
                m.d.sync += self.settling.eq(Cat(early[: self._hold]).any())
            enable = self.group_enables(m, early[-1], group)
            m.d.comb += getattr(self, f"write_enable{number_suffix(number)}").eq(enable)
        m.d.comb += [
            self.write_node.eq(delay_value(m, place, 1)),
            self.write_data.eq(delay_value(m, self.input_value("host_wdata"), latency + 1)),
        ]

    def group_enables(self, m: Module, pulse: Value, group: Value) -> Value:
        """Return registers with the write enables, one bit for each set of nodes.

        The nodes of a set share a register, so that wires stay short. `group` is the number of a
        set (`NodeGroups`). One cycle after `pulse`, the bit with this number is high and all others
        are low.
        """
        chosen = Cat(pulse & (group == number) for number in range(self._groups.n_groups))
        return delay_pulse(m, chosen, 1, name="write_enable_now")


def _shift_register(m: Module, pulse: Value, cycles: int, *, name: str) -> list[Value]:
    """Add a shift register; return a list of `pulse` delayed by 0, 1, 2, .. `cycles` cycles.

    `name` is the name of its registers.
    """
    line = [pulse]
    for _ in range(cycles):
        line.append(delay_pulse(m, line[-1], 1, name=name))
    return line


def _is_below(value: Value, limit: int) -> Value:
    """Return a bit that is 1 if `value` is less than the constant `limit`.

    It is computed without the operator ``<``, which makes a carry chain. Here groups of bits of
    `value` are compared: each group belongs to a sequence of equal bits in ``limit - 1``, and is
    compared with all zeros or all ones, which takes few LUTs.
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
        Prefix of the nets `start` and `busy`. While one of them is high, the port ignores writes;
        see `HostFront`.

    Returns
    -------
    read_latency : int
        Clock edges from a host address to its word.
    finders : list of Finder
        First the finders of received words, one for each form; then the finders of words to send,
        one for each send map (a table with the locations of the words to send). A finder translates
        a host address into a location at a node.
    """
    program = build.program
    forms, writes = range(len(program.forms)), sent_finders(program, layouts)
    views = [make_finder(layouts[form], program, form, received=True) for form in forms]
    given: dict[str, Parts] = {}
    if any(view.by_root for view in views):
        given["sampled_root"] = (Part("sampled_root", 0, layouts[0].root_bits),)
    if program.several:
        given["form"] = (Part("run_form", 0, address_width(len(forms))),)
    make = partial(
        HostTranslator,
        views,
        writes,
        width=build.word,
        address_bits=build.address_bits,
        answer=build.read_cycles,
        hold=build.hold,
        blocks=build.cut.nodes if build.cut else None,
    )
    return add_host_port(build, make, given, outside), [*views, *writes]


def add_host_port(
    build: CoreBuilder,
    make: Callable[[], HostTranslator],
    given: Mapping[str, Parts] = MappingProxyType({}),
    outside: str = "",
) -> int:
    """Add a host port and the read tree to a netlist, and return the read latency in clock edges.

    Parameters
    ----------
    build : CoreBuilder
        The netlist under construction.
    make : function of () -> HostTranslator
        Makes the module `HostTranslator` with the finders for this fabric.
    given : mapping of str to Parts
        Nets for all other inputs of the module, such as `form` and `sampled_root`.
    outside : str
        Prefix of the nets `start` and `busy`. While one of them is high, the port ignores writes;
        see `HostFront`.
    """
    host, names = make(), ("host_we", "host_node", "host_addr", "host_wdata")
    inputs: dict[str, Parts] = {
        name: build.add_input(name, len(getattr(host, name))) for name in names
    }
    inputs |= {name: (Part(outside + name, 0, 1),) for name in ("start", "busy")}
    if "block" in host.signature.members:
        inputs["block"] = build.add_input("block", len(host.block))
    build.from_host.extend(add_single_instance(build, "host", Role.HOST, make, {**inputs, **given}))
    add_read_tree(build)
    build.add_output("host_rdata", build.word)
    return host.read_latency


def add_read_tree(build: CoreBuilder) -> None:
    """Add the read tree: modules `ReadMerge`, which combine the words of all nodes to `host_rdata`.

    The OR of all words is the word of the addressed node, because all other nodes output 0. `build`
    is the netlist under construction.
    """
    width, words = build.word, build.nodes
    net, levels = build.read_net, len(tree_level_sizes(build.nodes))
    for level in range(levels):
        whole, rest = divmod(words, READ_TREE_RADIX)
        last = level == levels - 1
        name = "host_rdata" if last else f"read_{level}_{{}}"
        for size, numbers in ((READ_TREE_RADIX, np.arange(whole)), (rest, np.array([whole]))):
            if not size or not len(numbers):
                continue
            module = f"read_merge_{size}"
            build.add_module(module, partial(ReadMerge, size, width), role=Role.READ_TREE)
            data = tuple(Slice(net, numbers * READ_TREE_RADIX + k, 0, width) for k in range(size))
            build.add_array(
                f"read_merge_{level}_{{}}",
                module,
                numbers,
                inputs={"data": data},
                outputs={"word": (name, width)},
                scope=f"tree_{level}",
            )
        net, words = name, whole + (rest > 0)
