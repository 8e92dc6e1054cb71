# amaranth: UnusedElaboratable=no
"""Fabrics: a core and its front, as one component."""

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

#: The longest prefix of names of modules, and all prefixes.
MAX_PREFIX = 64
PREFIX = rf"([a-z_]\w{{0,{MAX_PREFIX - 1}}})?"


def check_prefix(prefix: str) -> None:
    """Check that the names of modules in Verilog can begin with a prefix.

    Raises
    ------
    InputError
        If they cannot.

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
    """A core and its front, as one component.

    Simulation, proof, Verilog and synthesis read its `netlist`; the front decides its ports.

    Parameters
    ----------
    prefix : str
        The beginning of the names of all modules in Verilog, up to 64 letters, digits and
        underscores. Fabrics with different prefixes can be parts of one design.

    Attributes
    ----------
    program : Program
        The program that the core carries out.
    width, beat : int
        Bits of a flit, and flits of a word of a port.
    interface : Interface
        The declarations of the ports.
    answer : int
        Cycles from a read at the inputs of a node to its word.
    core : Core
    layouts : tuple of HostLayout
        The order of the words of a message in each mode; in each form, in `form_layouts`.
    hold : int
        Clock edges by which a run begins later if it is started with the edge after a write of the
        host; one fewer for each edge between.
    operator_unit : OperatorUnit or None
        The unit that combines words, if any word can be combined.

    Raises
    ------
    InputError
        If the prefix cannot begin a name.
    """

    # Amaranth shall not warn of fabrics that are simulated or written, and so never elaborated.
    _MustUse__silence = True

    def __init__(self, front: Front, *, prefix: str = "") -> None:
        check_prefix(prefix)
        self.front, self.prefix = front, prefix
        self.core = core = front.core
        self.program, self.width, self.beat = core.program, core.width, core.beat
        self.flits, self.ports = self.program.flits, self.program.ports
        self.form_layouts = front.layouts
        # Addresses are the same for all forms of a mode.
        self.layouts = tuple(self.form_layouts[mode.first] for mode in self.program.modes)
        self.layout = self.layouts[0]
        build, built = core.build, front.add()
        self.nodes, self.answer, self.operator_unit = build.nodes, build.answer, build.operator_unit
        self.hold, self.here = build.hold, build.cut.here if build.cut else [*range(self.nodes)]
        self.router_classes, self.interface, self.read_latency, self._finders = built
        build.declared |= self.interface.ports
        self.netlist = build.done()
        super().__init__(
            {name: In(bits) for name, bits in self._levels(self.netlist.inputs)}
            | {name: Out(bits) for name, bits in self._levels(self.netlist.outputs)}
            | dict(self.interface.members())
        )

    def __copy__(self) -> Fabric:
        same = object.__new__(type(self))
        same.__dict__.update(self.__dict__)
        return same

    def behind(self, ports: str | None) -> Fabric:
        """Return a fabric that does the same behind ports of a kind, by default the host port."""
        raise NotImplementedError

    def with_program(self, program: Program) -> Fabric:
        """Return a fabric with the same choices that carries out another program."""
        raise NotImplementedError

    def _levels(self, ports: Mapping[str, int]) -> list[tuple[str, int]]:
        """Ports for which no member of the interface stands, with their widths."""
        inside = self.interface.is_in_member
        return [(name, bits) for name, bits in ports.items() if not inside(name)]

    def close(self, m: Module, design: Assembly, platform: object) -> None:
        """Drive the ports that the front leaves open, in a design that has all of it."""

    @property
    def register_map(self) -> RegisterMap | None:
        """The map of registers and windows, if the ports have one."""
        return self.interface.registers

    @property
    def runs_alone(self) -> bool:
        """True if it needs no other fabrics to run."""
        return True

    @property
    def digest(self) -> int:
        """A number of 32 bits, by which software recognises the fabric."""
        return self.front.digest

    @property
    def top(self) -> str:
        """The kind of ports: of the nodes, or one for all."""
        return self.front.top

    @property
    def tables(self) -> Any:
        """The tables of a fabric that can be loaded, else None."""
        return self.front.tables

    @property
    def own_clocks(self) -> bool:
        """True if nodes have clocks of their own."""
        return any(name.startswith("clk_") for name in self.netlist.inputs)

    @property
    def predicted_cycles(self) -> int:
        """Clock edges from the begin of a run to done, of the longest in the slowest mode."""
        return max(self.cycles_of(mode=mode) for mode in range(len(self.program.modes)))

    def cycles_of(self, length: int | None = None, *, mode: int | None = None) -> int:
        """Clock edges from the begin of a run to done; see `Program.cycles`."""
        return self.program.cycles(length, mode=mode)

    def delivered(self, words: np.ndarray, **chosen: int) -> tuple[np.ndarray, np.ndarray]:
        """What nodes receive, and which of it is known; see `Program.delivered`."""
        return self.program.delivered(words, **chosen, width=self.width)

    @property
    def shared_port(self) -> bool:
        """True if one host port serves all nodes."""
        return self.core.memory_port.shared

    @property
    def streaming(self) -> bool:
        """True if nodes have ports for what they send and receive, in place of memories."""
        return not isinstance(self.core.memory_port, MemoryPort)

    @property
    def write_latency(self) -> int:
        """Edges that a write takes, that into the memory included; host top only."""
        return self.front.write_latency

    @cached_property
    def origins(self) -> Origins:
        """How origins are known, and what that costs."""
        from .inventory import Origins, tag_cost  # which reports alone need

        rom_bits = sum(finder.rom_bits() for finder in self._finders)
        known_by = dict.fromkeys(form.known_by for form in self.program.forms)
        # Forms that are loaded are not of common variants.
        parts = self.program.parts if self.tables else (self.program,)
        tags = max(tag_cost(part) for part in parts)
        return Origins(" or ".join(known_by), rom_bits, *tags)

    def elaborate(self, platform: object) -> Module:
        """Connect the ports to those of the assembly."""
        m = Module()
        from .assembly import Assembly

        m.submodules.assembly = assembly = Assembly(self.netlist)
        for name, _ in self._levels(self.netlist.inputs):
            m.d.comb += getattr(assembly, name).eq(getattr(self, name))
        for name, _ in self._levels(self.netlist.outputs):
            m.d.comb += getattr(self, name).eq(getattr(assembly, name))
        self.interface.connect(m, self, assembly)
        return m

    def address_map(self) -> dict[str, Any]:
        """Where each block arrives, or lies, in a core; see `torusfabric.rtl.core_address_map`."""
        from .core_address_map import core_address_map

        return core_address_map(self.program)
