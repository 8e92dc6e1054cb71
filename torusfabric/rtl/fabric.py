# amaranth: UnusedElaboratable=no
"""Fabrics: a core and its front as one Amaranth component.

A *core* is the hardware that executes a program, and a *front* the hardware of an adapter around
it. The front provides the ports of the fabric (`torusfabric.rtl.front`).

The class `Fabric` of this module knows no adapter. `torusfabric.fabric` derives from it the
`Fabric` that users make, and chooses the front from the arguments of the user.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..errors import InputError
from .core.memory_port import MemoryPort
from .front import Front

if TYPE_CHECKING:
    from ..contract.registers import RegisterMap
    from ..program import Program
    from .assembly import Assembly
    from .inventory import Origins

__all__ = ["Fabric", "check_prefix"]

#: The maximum length of a prefix of module names, and the pattern of valid prefixes.
MAX_PREFIX = 64
PREFIX = rf"([a-z_]\w{{0,{MAX_PREFIX - 1}}})?"


def check_prefix(prefix: str) -> None:
    """Check that a prefix is a valid beginning of module names in Verilog.

    Raises
    ------
    InputError
        If the prefix is not valid.

    Examples
    --------
    >>> check_prefix("left_")
    >>> check_prefix("2nd_")
    Traceback (most recent call last):
    torusfabric.errors.InputError: Prefix must be a letter or _, then letters, digits and _, \
up to 64 in all, not '2nd_'
    """
    if not isinstance(prefix, str) or not re.fullmatch(PREFIX, prefix, re.ASCII | re.IGNORECASE):
        raise InputError(
            "Prefix must be a letter or _, then letters, digits and _, up to "
            f"{MAX_PREFIX} in all, not {prefix!r}"
        )


class Fabric(wiring.Component):
    """A core and its front as one component.

    The front is the hardware around the core that provides the ports. The constructor builds the
    whole netlist, which simulation, proof, Verilog and synthesis read.

    Parameters
    ----------
    front : Front
        The core, and the hardware around it that provides the ports.
    prefix : str
        The beginning of the names of all modules in Verilog, up to 64 letters, digits and
        underscores. Fabrics with different prefixes can be parts of one design.

    Attributes
    ----------
    program : Program
        The program that the core executes.
    width : int
        Bits of a flit.
    beat : int
        Flits in a word of a port.
    netlist : Netlist
        All instances of the fabric, and the nets between them.
    interface : Interface
        The names, widths and meanings of the ports.
    answer : int
        Cycles from a read address at the ports to the word.
    core : Core
        The core, a part of the netlist.
    layouts : tuple of HostLayout
        For each mode, the order in which the host port numbers the words of a message.
    form_layouts : tuple of HostLayout
        For each form, the order in which the host port numbers the words of a message.
    hold : int
        Clock edges by which the begin of a run is delayed if the start comes one edge after a
        write of the host. Each further edge between write and start shortens the delay by one.
    here : list of int
        The nodes that are built: all nodes, or those of one of several parts.
    operator_unit : OperatorUnit or None
        The unit that combines words, if the program has operators.

    Raises
    ------
    InputError
        If the prefix cannot begin a name.
    """

    # Amaranth shall not warn if a fabric is never elaborated: engines and the writer of Verilog
    # read its netlist instead.
    _MustUse__silence = True

    def __init__(self, front: Front, *, prefix: str = "") -> None:
        check_prefix(prefix)
        self.front, self.prefix = front, prefix
        self.core = core = front.core
        self.program, self.width, self.beat = core.program, core.width, core.beat
        self.flits, self.ports = self.program.flits, self.program.ports
        self.form_layouts = front.layouts
        # All forms of a mode have the same addresses, so the layout of the first form serves.
        self.layouts = tuple(self.form_layouts[mode.first] for mode in self.program.modes)
        self.layout = self.layouts[0]
        build, built = core.build, front.add_hardware()
        self.nodes, self.answer, self.operator_unit = (
            build.nodes,
            build.read_cycles,
            build.operator_unit,
        )
        self.hold, self.here = (
            build.hold,
            build.cut.built_nodes if build.cut else [*range(self.nodes)],
        )
        self.router_classes, self.interface, self.read_latency, self._finders = built
        build.declared |= self.interface.ports
        self.netlist = build.make_netlist()
        super().__init__(
            {name: In(bits) for name, bits in self._ports_outside_members(self.netlist.inputs)}
            | {name: Out(bits) for name, bits in self._ports_outside_members(self.netlist.outputs)}
            | dict(self.interface.port_members())
        )

    def __copy__(self) -> Fabric:
        same = object.__new__(type(self))
        same.__dict__.update(self.__dict__)
        return same

    def behind(self, bus: str | None) -> Fabric:
        """Return a fabric with the same program, whose host port is behind another bus.

        Parameters
        ----------
        bus : str or None
            The name of the bus, or None for the host port without a bus.
        """
        raise NotImplementedError

    def with_program(self, program: Program) -> Fabric:
        """Return a fabric with the same options as this one, for another program."""
        raise NotImplementedError

    def _ports_outside_members(self, ports: Mapping[str, int]) -> list[tuple[str, int]]:
        """Return the name and width of each port that is not grouped with others in a member.

        A member is a group of signals of the interface, such as a stream.
        """
        inside = self.interface.is_in_member
        return [(name, bits) for name, bits in ports.items() if not inside(name)]

    def close(self, m: Module, design: Assembly, platform: object) -> None:
        """Drive the inputs of the fabric that are not connected to pins of a device.

        `m` is the module of the design that contains the fabric as `design`.

        This method drives nothing, because all inputs of a complete fabric have pins. A fabric that
        is one part of a larger network overrides the method: it drives the number of the part and
        the link ports.
        """

    @property
    def register_map(self) -> RegisterMap | None:
        """The registers and the address ranges of memories behind a bus; None without a bus."""
        return self.interface.registers

    @property
    def runs_alone(self) -> bool:
        """True if the fabric runs alone; False if it is one of several parts of a network."""
        return True

    @property
    def digest(self) -> int:
        """A hash of 32 bits, by which software recognises the fabric."""
        return self.front.digest

    @property
    def top(self) -> str:
        """The kind of ports, such as ``core`` (ports at each node) or ``host`` (one for all)."""
        return self.front.top

    @property
    def tables(self) -> Any:
        """The writable tables of a fabric that programs are loaded into; None if it has none."""
        return self.front.tables

    @property
    def own_clocks(self) -> bool:
        """True if the streams of each node have their own clock."""
        return any(name.startswith("clk_") for name in self.netlist.inputs)

    @property
    def predicted_cycles(self) -> int:
        """Clock edges from the begin of a run to done, for the longest run of the slowest mode."""
        return max(self.cycles_of(mode=mode) for mode in range(len(self.program.modes)))

    def cycles_of(self, length: int | None = None, *, mode: int | None = None) -> int:
        """Return the clock edges from the begin of a run to done; see `Program.cycles`.

        Parameters
        ----------
        length : int, optional
            Flits of a message, if runs choose it; by default the largest number.
        mode : int, optional
            Number of the mode, by default 0.
        """
        return self.program.cycles(length, mode=mode)

    def delivered(self, words: np.ndarray, **chosen: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the words that a run delivers, computed in software, given the words sent.

        The result has two arrays of shape (nodes, receive words): the words, and True where a node
        receives one. See `Program.delivered`.
        """
        return self.program.delivered(words, **chosen, width=self.width)

    @property
    def shared_port(self) -> bool:
        """True if one host port serves all nodes, False if each node has ports of its own."""
        return self.core.memory_port.shared

    @property
    def streaming(self) -> bool:
        """True if the nodes have no memories: words go directly from and to ports of the node."""
        return not isinstance(self.core.memory_port, MemoryPort)

    @property
    def write_latency(self) -> int:
        """Clock edges of a write, from the host port to the edge that writes the memory."""
        return self.front.write_latency

    @cached_property
    def origins(self) -> Origins:
        """The fact by which receivers know the origin of a word, and its cost in hardware."""
        from .inventory import Origins, tag_cost  # imported here because only reports need it

        rom_bits = sum(finder.rom_bits() for finder in self._finders)
        known_by = dict.fromkeys(form.known_by for form in self.program.forms)
        # The forms of a loaded fabric have different variants, so each is priced as a program.
        parts = self.program.parts if self.tables else (self.program,)
        tags = max(tag_cost(part) for part in parts)
        return Origins(" or ".join(known_by), rom_bits, *tags)

    def elaborate(self, platform: object) -> Module:
        """Return an Amaranth module with all instances, connected to the ports of the fabric."""
        m = Module()
        from .assembly import Assembly

        m.submodules.assembly = assembly = Assembly(self.netlist)
        for name, _ in self._ports_outside_members(self.netlist.inputs):
            m.d.comb += getattr(assembly, name).eq(getattr(self, name))
        for name, _ in self._ports_outside_members(self.netlist.outputs):
            m.d.comb += getattr(self, name).eq(getattr(assembly, name))
        self.interface.connect_members(m, self, assembly)
        return m

    def address_map(self) -> dict[str, Any]:
        """Return the location of each block, as nested lists for the manifest.

        In a fabric without memories it is the in-port at which the block arrives, otherwise a
        memory and an address. See `torusfabric.rtl.core_address_map`.
        """
        from .core_address_map import core_address_map

        return core_address_map(self.program)
