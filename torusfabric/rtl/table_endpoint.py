"""Endpoints of tables: memories whose addresses come from the sequencer, the same in all nodes."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from .memories import add_memory, address_width, choose
from .netlist import Leaf

__all__ = ["TableEndpoint"]


class TableEndpoint(Leaf):
    """Holds what a node sends, and what it has received.

    Parameters
    ----------
    plan : TablePlan
    injected : sequence of int
        The banks that the router reads, counted over those of the plan and then those for what the
        node sends.
    viewed : sequence of int
        The banks that the host reads.
    width : int
        Bits of a word.
    nodes : int
        Number of nodes of the fabric.
    address_bits : int
    private : bool
        Whether the node has a read port of its own, so that addresses differ from node to node.

    Members
    -------
    rx : In(ports * width)
        A word from each in-port.
    busy : In(1)
        Whether a run is under way.
    read_k : In
        What is read from bank k, a cycle later.
    store_k, write_k : In
        Whether and where to write bank k.
    inject : Out(lanes * width)
        The words read from the banks that are injected.
    write_node, write_chunk, write_address, write_data, write_enable : In
        Writes a word into a send memory, told by `write_chunk`, of the node whose number is `node`.
    read_node, read_bank, read_address : In
        Reads a word, two cycles later; `read_bank`, given one cycle after the address, chooses the
        bank. The address must be that of `read_k`, unless the read port is private.
    node : In
        The number of this node.
    read_data : Out(width)
    """

    def __init__(self, *, plan, injected, viewed, width, nodes, address_bits, private=False):
        self._plan, self._injected, self._viewed = plan, injected, viewed
        self._width, self._private = width, private
        self._banks = [*plan.banks, *plan.own]
        arriving = [k for k, bank in enumerate(plan.banks) if bank.depth]
        reads = [k for k, bank in enumerate(self._banks) if bank.depth]
        super().__init__(
            {
                "rx": In(plan.ports * width),
                "busy": In(1),
                "inject": Out(max(len(injected), 1) * width),
                "node": In(address_width(nodes)),
                "write_node": In(address_width(nodes)),
                "write_chunk": In(address_width(len(plan.own))),
                "write_address": In(address_bits),
                "write_data": In(width),
                "write_enable": In(1),
                "read_node": In(address_width(nodes)),
                "read_bank": In(address_width(len(self._banks))),
                "read_address": In(address_bits),
                "read_data": Out(width),
            }
            | {f"read_{k}": In(address_bits) for k in reads}
            | {f"write_{k}": In(address_bits) for k in arriving}
            | {f"store_{k}": In(1) for k in arriving}
        )
        self.read_data = Signal(width, reset_less=True)

    def elaborate(self, platform):
        m = Module()
        words = {k: self._memory(m, k) for k, bank in enumerate(self._banks) if bank.depth}
        if self._injected:
            m.d.comb += self.inject.eq(Cat(*(words[k] for k in self._injected)))
        last = words[self._viewed[-1]]
        banks = [words[k] if k in self._viewed else last for k in range(len(self._banks))]
        m.d.sync += self.read_data.eq(choose(banks, self.value("read_bank")))
        return m

    def _memory(self, m, number):
        """One bank; returns the word read."""
        plan, bank = self._plan, self._banks[number]
        chosen = self.value("read_node") == self.value("node")
        busy, address = self.value("busy"), self.value(f"read_{number}")
        if number not in self._viewed:
            enable = busy
        elif number not in self._injected:
            enable = chosen
        else:
            enable = busy | chosen
            if self._private:
                address = Mux(busy, address, self.value("read_address"))
        if number < len(plan.banks):
            write = (
                self.value(f"write_{number}"),
                self.words("rx", self._width)[bank.port],
                self.value(f"store_{number}"),
            )
        else:
            write = self._host_write(number - len(plan.banks))
        return add_memory(
            m,
            f"bank_{number}",
            width=self._width,
            depth=bank.depth * plan.flits,
            write=write,
            read=(address, enable),
        )

    def _host_write(self, number):
        """The write port of a bank for what the node sends."""
        enable = self.value("write_enable") & (self.value("write_node") == self.value("node"))
        if len(self._plan.own) > 1:
            enable = enable & (self.value("write_chunk") == number)
        return self.value("write_address"), self.value("write_data"), enable
