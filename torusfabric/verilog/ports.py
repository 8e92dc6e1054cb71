"""The ports of a top as data: how wide each is, and what it is for."""

from typing import Any

from ..contract.ports import Protocol, grouped_ports
from ..rtl.netlist import Netlist

__all__ = ["port_facts"]


WISHBONE = {
    "wb_cyc": "a bus cycle is under way",
    "wb_stb": "an access is asked for, until wb_ack or wb_err",
    "wb_we": "it is a write",
    "wb_adr": "the address of a word of 32 bits",
    "wb_sel": "the bytes to write: all; none does nothing",
    "wb_dat_w": "the word to write",
    "wb_dat_r": "the word read, with wb_ack",
    "wb_ack": "the access is done",
    "wb_err": "the access is refused",
}

AXI_LITE = {
    "awaddr": "the address of the first byte of the word to write",
    "awprot": "not used",
    "awvalid": "awaddr is there",
    "awready": "awaddr is taken, with wdata",
    "wdata": "the word to write",
    "wstrb": "the bytes to write: all; none does nothing",
    "wvalid": "wdata is there",
    "wready": "wdata is taken, with awaddr",
    "bresp": "0 if the write is done, 2 (SLVERR) if it is refused",
    "bvalid": "bresp is there",
    "bready": "bresp is taken",
    "araddr": "the address of the first byte of the word to read",
    "arprot": "not used",
    "arvalid": "araddr is there",
    "arready": "araddr is taken",
    "rdata": "the word read",
    "rresp": "0 if the word is read, 2 (SLVERR) if that is refused",
    "rvalid": "rdata is there",
    "rready": "rdata is taken",
}

AXI4 = {
    **{
        f"{channel}{name}": meaning
        for channel, way in (("aw", "write"), ("ar", "read"))
        for name, meaning in {
            "id": "who asks; the answer has the same",
            "addr": f"the address of the first byte to {way}",
            "len": f"beats to {way}, less one",
            "size": "bytes of a beat are 1 << size",
            "burst": "whether the address stays (0), counts up (1) or wraps (2)",
            "lock": "not used",
            "cache": "not used",
            "prot": "not used",
            "valid": "the burst is asked for",
            "ready": "the burst is taken",
        }.items()
    },
    "wdata": "the flit of a beat, from its least byte on",
    "wstrb": "the bytes to write",
    "wlast": "not used: beats are counted",
    "wvalid": "wdata is there",
    "wready": "wdata is taken",
    "bid": "who asked for what is written",
    "bresp": "0 if the burst is written, 2 (SLVERR) if a beat of it is refused",
    "bvalid": "bresp is there",
    "bready": "bresp is taken",
    "rid": "who asked for what is read",
    "rdata": "the flit read, from its least byte on",
    "rresp": "0 if the flit is read, 2 (SLVERR) if that is refused",
    "rlast": "it is the last of its burst",
    "rvalid": "rdata is there",
    "rready": "rdata is taken",
}


#: The ports of all tops by name; those of single nodes without the number of the node.
MEANINGS = grouped_ports(
    {
        ("clock", Protocol.CLOCK): {"clk": "all registers change with its rising edge"},
        ("reset", Protocol.LEVEL): {"rst": "synchronous, active high"},
        ("control", Protocol.PULSE): {
            "start": "a pulse of one cycle starts a run, unless one is under way",
            "load_we": "takes load_data as a word of an image",
            "load_first": "with load_we, it is the first",
            "load_data": "the word",
        },
        ("control", Protocol.SAMPLED): {
            "mode": "the collective of the run, by its number, sampled at start",
            "length": "flits of the messages of the run, sampled at start",
            "root": "the root of the run, sampled at start",
            "operation": "the operator of the run, by its number in the mode, sampled at start",
        },
        ("status", Protocol.LEVEL): {
            "busy": "high from the edge after start until done",
            "done": "high from the end of a run until the next start",
            "cycles": "clock edges from the begin of a run to done",
            "error": "why the last start was not carried out: 1 mode, 2 root, 3 length, "
            "4 operation, 5 busy, 10 what was loaded is for another fabric or incomplete; 0 if it "
            "was",
            "loaded": "an image is there, whole",
            "loaded_program": "the digest of its program; 0 if none is",
            "modes": "a bit for each mode that is there",
            "round": "the row of the program that is under way",
            "stalled": "a node has kept runs waiting for longer than the timeout",
            "stalled_node": "its number, while stalled",
            "stalled_sends": "while stalled, whether it has not sent; else it has not taken what "
            "it received",
        },
        ("write", Protocol.MEMORY): {
            "host_we": "writes host_wdata at host_addr of host_node; ignored with a start, "
            "while busy, and past the words of a message; a run that is started while a word is on "
            "its way begins when it is there",
            "host_node": "the node that is written or read",
            "host_addr": "the address in the memory of the node",
            "host_wdata": "the word to write",
            "write_bank": "the send memory to write",
            "write_address": "the address in the bank to write",
            "write_data": "the word to write",
            "write_enable": "writes write_data",
        },
        ("read", Protocol.MEMORY): {
            "host_rdata": "the word at an address, read_latency edges after it",
            "read_bank": "the bank to read, a cycle after read_address",
            "read_address": "the address in the bank to read",
            "read_data": "the word read, two cycles after read_address",
        },
        ("data", Protocol.SCHEDULED): {
            "inject": "flit tx_address of each chunk, a cycle after tx_address",
            "receive": "the word at each in-port, while rx_enable",
        },
        ("status", Protocol.SCHEDULED): {
            "tx_address": "the number of the flit to inject",
            "rx_address": "counts flit * steps + step - 1 of what arrives",
            "rx_enable": "high while something arrives",
        },
        ("interrupt", Protocol.LEVEL): {
            "irq": "high while an interrupt is pending that is enabled"
        },
        ("bus", Protocol.WISHBONE): WISHBONE,
        ("bus", Protocol.AXI_LITE): {
            f"s_axil_{name}": meaning for name, meaning in AXI_LITE.items()
        },
        ("bus", Protocol.AXI4): {f"s_axi_{name}": meaning for name, meaning in AXI4.items()},
    }
)


def port_facts(netlist: Netlist) -> dict[str, dict[str, Any]]:
    """Return the width and the purpose of every port of a top.

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("2", "allgather"))
    >>> netlist = tf.Fabric(program, width=8, top="stream").netlist
    >>> port_facts(netlist)["m_axis_1_tid"]["role"]
    'data'
    """
    meanings = {**MEANINGS, **netlist.declared}
    sides = {"input": {"clk": 1, "rst": 1} | netlist.inputs, "output": netlist.outputs}
    ports = {}
    for direction, nets in sides.items():
        for name, width in nets.items():
            shared, node = netlist.node_ports.get(name, (name, None))
            known = meanings[name if name in meanings else shared]
            ports[name] = {
                "direction": direction,
                "width": width,
                "role": known.role,
                "protocol": str(known.protocol),
                "node": node,
                "clock": None if known.protocol == Protocol.CLOCK else known.clock,
                "meaning": known.meaning,
            }
    return ports
