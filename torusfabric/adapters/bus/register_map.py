"""The register map: the addresses of registers and windows of a fabric behind a bus, as plain data.

The hardware, the SystemRDL file, the manifest and the documentation are made from this map. An
address is called `offset` in the declarations, and counts bytes. The address space has four
quarters of equal size::

    0   registers
    1   send window: the words that the nodes send, write only
    2   receive window: the words that the nodes have received, read only
    3   load window: an image for loadable tables, write only

A quarter without use is empty: accesses to it end with an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...contract.registers import (
    BYTES,
    DATA_BITS,
    DIGEST_OFFSET,
    IDENTIFICATION,
    Access,
    Field,
    Register,
    RegisterMap,
    Window,
)
from ...errors import InputError
from ...rtl.memories import address_width

if TYPE_CHECKING:
    from ..host.finders import HostLayout

__all__ = ["register_map"]

#: Version of the map. It is increased when a register is removed or changes its meaning.
VERSION = 1

#: Least number of bus words of a quarter, enough for all registers but those of loadable tables.
#: With loadable tables a quarter is larger, because it has to hold an image.
REGISTER_WORDS = 16

#: Largest number of bits of a byte address.
MOST_ADDRESS_BITS = 32


def register_map(  # noqa: PLR0913 (one fact each)
    ports: Mapping[str, int],
    layouts: Sequence[HostLayout],
    *,
    width: int,
    flits: int,
    digest: int,
    nodes: int,
    declared: Sequence[Register] = (),
    load_words: int = 0,
) -> RegisterMap:
    """Return the register map of a fabric: the registers and windows of its bus, with addresses.

    Parameters
    ----------
    ports : mapping of str to int
        Widths in bits of the ports of the front behind the bus (a host port or streams), by name. A
        field that drives or shows a port exists only if this port exists, and a register only if it
        has a field.
    layouts : sequence of HostLayout
        Host addresses of each mode. A window (the address range for the memories of nodes) has the
        size of the mode with the most words. Empty if nodes have ports of their own: then there are
        no windows.
    width : int
        Bits of a word of the host port.
    flits : int
        Largest number of flits of a message, the reset value of the register `length`.
    digest : int
        Value of the register `digest`.
    nodes : int
        Nodes of the fabric, each with an address range in every window.
    declared : sequence of Register
        Registers that other adapters add. If a register of the same name exists, the new fields are
        appended to its fields.
    load_words : int
        Words of the load window; 0 for a fabric without loadable tables.

    Raises
    ------
    InputError
        If byte addresses need more than 32 bits.
    """
    known = {register.name: register for register in REGISTERS}
    for more in declared:
        own = known[more.name].fields if more.name in known else ()
        known[more.name] = replace(more, fields=(*own, *more.fields))
    every = sorted(known.values(), key=lambda register: register.offset)
    registers = (_fit_to_ports(register, ports, flits, digest) for register in every)
    there = tuple(register for register in registers if register.fields)
    quarter_bits = (max(REGISTER_WORDS, load_words) - 1).bit_length()
    load: tuple[Window, ...] = ()
    if load_words:
        load = (
            Window(
                "load",
                0,
                Access.WRITE,
                LOAD_MEANING,
                nodes=1,
                stride=BYTES * load_words,
                flits=load_words,
                flit_bytes=BYTES,
            ),
        )
    if not layouts:
        load = tuple(replace(each, offset=3 * BYTES << quarter_bits) for each in load)
        return RegisterMap(there, load, quarter_bits, 0, 1)
    layout, parts = layouts[0], -(-width // DATA_BITS)
    part_bits, flit_bits = (parts - 1).bit_length(), layout.address_bits - 1
    quarter_bits = max(address_width(nodes) + flit_bits + part_bits, quarter_bits)
    if (byte_bits := quarter_bits + 4) > MOST_ADDRESS_BITS:
        raise InputError(
            f"Addresses of the bus must have at most {MOST_ADDRESS_BITS} bits, not {byte_bits} "
            f"({nodes} "
            f"nodes of {layout.recv_base} flits of {width} bits); choose fewer nodes or shorter "
            "messages"
        )
    quarter, flit_bytes = BYTES << quarter_bits, BYTES << part_bits
    common = {"nodes": nodes, "stride": flit_bytes << flit_bits, "flit_bytes": flit_bytes}
    sent = max(each.send_words for each in layouts)
    received = max(each.recv_words for each in layouts)
    windows = (
        Window("send", quarter, Access.WRITE, SEND_MEANING, flits=sent, **common),
        Window("receive", 2 * quarter, Access.READ, RECEIVE_MEANING, flits=received, **common),
        *(replace(each, offset=3 * quarter) for each in load),
    )
    return RegisterMap(there, windows, quarter_bits, flit_bits, parts)


def _fit_to_ports(
    register: Register, ports: Mapping[str, int], flits: int, digest: int
) -> Register:
    """Return a copy of a register without the fields whose ports this fabric does not have.

    `ports` has the width of each port that exists; a field gets the width of its port. A constant
    field, which has no port, stays. The register `digest` gets the value `digest`, and the register
    `length` the value `flits` after a reset.
    """
    fields = []
    for field in register.fields:
        if register.name == "digest":
            fields.append(replace(field, reset=digest))
        elif not field.port:
            fields.append(field)
        elif field.port in ports:
            reset = flits if field.port == "length" else field.reset
            fields.append(replace(field, width=ports[field.port], reset=reset))
    return replace(register, fields=tuple(fields))


SEND_MEANING = (
    "the words that the nodes send, written while no run is under way; word k is word k in all "
    "modes"
)

RECEIVE_MEANING = "the words that the nodes receive, read while no run is under way"

LOAD_MEANING = "the words of an image, from the first on"


def _constant_register(name: str, offset: int, value: int, meaning: str) -> Register:
    field = Field("value", 0, DATA_BITS, meaning, reset=value)
    return Register(name, offset, Access.READ, meaning, (field,))


#: All registers that a fabric can have. A field with a port gets the width of the port.
REGISTERS = (
    _constant_register(
        "identification", 0x00, IDENTIFICATION, "the constant by which software recognises a fabric"
    ),
    _constant_register("version", 0x04, VERSION, "the version of the register map"),
    Register(
        "start",
        0x08,
        Access.WRITE,
        "starts runs",
        (Field("start", 0, 1, "1 starts a run; an error response means that none began", "start"),),
    ),
    Register.from_port("mode", 0x0C, Access.READ_WRITE, "the mode of the next run"),
    Register.from_port("length", 0x10, Access.READ_WRITE, "flits of the messages of the next run"),
    Register.from_port("root", 0x14, Access.READ_WRITE, "the root of the next run"),
    Register.from_port("operation", 0x18, Access.READ_WRITE, "the operation of the next run"),
    Register(
        "status",
        0x1C,
        Access.READ,
        "the state of the last run",
        (
            Field("busy", 0, 1, "a run is under way", "busy"),
            Field("done", 1, 1, "the last run is over", "done"),
            Field("loaded", 3, 1, "a complete image is loaded", "loaded"),
            Field(
                "error",
                4,
                4,
                "the reason why the last start was refused (error number); 0 if it was accepted",
                "error",
            ),
        ),
    ),
    Register.from_port(
        "cycles", 0x20, Access.READ, "clock cycles of the last run, from its beginning to done"
    ),
    Register.from_port(
        "round", 0x24, Access.READ, "the number of the program's row that is under way"
    ),
    Register(
        "interrupt_enable",
        0x28,
        Access.READ_WRITE,
        "the events that raise the interrupt output",
        (Field("done", 0, 1, "irq is high while interrupt_pending.done is 1"),),
    ),
    Register(
        "interrupt_pending",
        0x2C,
        Access.CLEAR,
        "the events since this register was cleared",
        (Field("done", 0, 1, "a run has ended"),),
    ),
    _constant_register("digest", DIGEST_OFFSET, 0, "the digest of the fabric's program and width"),
    Register(
        "stalled",
        0x34,
        Access.READ,
        "the node that keeps runs waiting for too long",
        (
            Field("stalled", 0, 1, "there is such a node", "stalled"),
            Field(
                "sends",
                1,
                1,
                "1: it has not sent its message; 0: it has not taken the words that it received",
                "stalled_sends",
            ),
            Field("node", 16, 16, "the number of the node", "stalled_node"),
        ),
    ),
    Register(
        "abort",
        0x38,
        Access.WRITE,
        "ends runs early",
        (Field("abort", 0, 1, "1 ends the run under way, without done", "reset_run"),),
    ),
    Register.from_port("modes", 0x40, Access.READ, "a bit for each mode that is loaded"),
    Register.from_port(
        "loaded_program", 0x44, Access.READ, "the digest of the program of the image"
    ),
)
