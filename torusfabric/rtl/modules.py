"""Base classes of the hardware modules, and delay registers that the core and all adapters use.

- A *leaf* (`Leaf`) is a module that a netlist has instances of: a router, a link, a memory.
- A *shared module* (`SharedModule`) lies inside leaves: a multiplexer, an adder. Many leaves have
  instances of it (`SharedInstance`). A netlist does not list shared modules. The writer of Verilog
  finds them in the leaves, and writes each once.
- `unmerged_register`, `delay_value` and `delay_pulse` delay a value by clock cycles.

Why `UNMERGED`: synthesis merges registers that always hold the same value. It would thus undo every
copy of a register that was made to keep wires short and fan-out small. A register with the
attribute `UNMERGED` is never merged. The emitted Verilog passes the attribute on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakKeyDictionary

from amaranth.hdl import (
    Cat,
    Const,
    Elaboratable,
    Instance,
    Module,
    Signal,
    Value,
)
from amaranth.lib import wiring

from .amaranth_private import ast
from .memories import MemoryShape, memories_of

__all__ = ["UNMERGED", "UnknownToZero", "Leaf", "SharedModule", "SharedInstance",
           "unmerged_register", "delay_value", "delay_pulse"]  # fmt: skip

#: The attribute of a register that synthesis must not merge with an equal register.
UNMERGED = {"dont_merge": 1}


class Leaf(wiring.Component):
    """A module that a netlist has instances of.

    A leaf is used in two ways. To emit its Verilog, it stands alone: its inputs are the ports of
    its signature. Inside an `Assembly`, the assembly binds each input to the signals that drive the
    input. Why: the simulator then has no wires between instances to evaluate. `elaborate` of a leaf
    therefore reads its inputs by `input_value` and `input_words`, which serve in both cases.

    Parameters
    ----------
    signature : dict of str to Member
        The ports by name. Members with a width of 0 are left out.
    """

    # Many leaves are made only to read their ports. Amaranth shall not warn that such a leaf is
    # never elaborated.
    _MustUse__silence = True

    def __init__(self, signature: Mapping[str, wiring.Member]) -> None:
        self._bound: dict[str, list[Value]] = {}
        super().__init__({name: each for name, each in signature.items() if each.shape})

    def bind_input(self, name: str, parts: list[Value]) -> None:
        """Connect an input to the signals that drive it, in place of a port of the module.

        Parameters
        ----------
        name : str
            The name of the input.
        parts : list of Value
            The signals, least significant part first.
        """
        self._bound[name] = parts

    def input_value(self, name: str) -> Value:
        """Return the value of an input: the signals that drive it, or else the port of the module.

        Parameters
        ----------
        name : str
            The name of the input.
        """
        if name not in self._bound:
            return getattr(self, name)
        parts = self._bound[name]
        return parts[0] if len(parts) == 1 else Cat(*parts)

    @property
    def is_unbound(self) -> bool:
        """True if the inputs are ports of the module, as in a leaf whose Verilog is emitted.

        In a simulation the inputs are bound to the signals that drive them.
        """
        return not self._bound

    def input_words(self, name: str, width: int) -> list[Value]:
        """Return the value of an input, cut into words, the lowest bits first.

        Parameters
        ----------
        name : str
            The name of the input.
        width : int
            Bits of a word.
        """
        parts = self._bound.get(name)
        if parts is not None and all(len(part) == width for part in parts):
            return list(parts)
        whole = self.input_value(name)
        return [whole[start : start + width] for start in range(0, len(whole), width)]

    def memory_shapes(self) -> Sequence[MemoryShape]:
        """Return the size of each memory and ROM inside this module; see `memories_of`."""
        return memories_of(self)


@dataclass(frozen=True, eq=False)
class SharedModule:
    """A module, such as a multiplexer, that is written once and has instances in many others.

    A netlist does not list these modules. They lie inside the modules (leaves) that it lists.

    Parameters
    ----------
    name : str
        The name in Verilog. It contains every parameter of the module, so that modules of one
        name are equal.
    about : str
        A description of one line, for the comment above the module.
    widths : dict of str to int
        The width of each port in bits, without clock and reset. The last port is the output.
    fill : function of (Module, Signal, ..) -> None
        Adds the logic to a module, given a signal for each port.
    shape : object
        The key by which the writer of Verilog finds hand-written forms of this module for
        particular devices or simulators; None if there are none.
    clocked : bool
        True if clock and reset are always ports; otherwise only if the logic reads them.
    """

    name: str
    about: str
    widths: Mapping[str, int]
    fill: Callable[..., None]
    shape: object = None
    clocked: bool = False

    def make_ports(self) -> list[Signal]:
        """Return a new signal for each port, in the order of `widths`, without ports of 0 bits."""
        return [
            Signal(width, name=name, reset_less=True)
            for name, width in self.widths.items()
            if width
        ]

    def make_module(self, ports: Sequence[Signal]) -> Module:
        """Return the Amaranth module with the logic, between signals that `make_ports` has made."""
        m = Module()
        self.fill(m, *ports)
        return m


class SharedInstance(Elaboratable):
    """An instance of a shared module.

    Parameters
    ----------
    module : SharedModule
        The module to instantiate.
    **ports : Value
        The signal at each port, by the name of the port behind ``i_`` (input) or ``o_`` (output).
    """

    def __init__(self, module: SharedModule, **ports: Value) -> None:
        self.module, self._ports = module, ports

    def elaborate(self, platform: object) -> Instance:
        """Return an Amaranth instance of the module, by its name.

        In simulation nothing is elaborated here: the simulators take the logic of the module
        itself.
        """
        return Instance(self.module.name, **self._ports)


@dataclass(frozen=True)
class UnknownToZero:
    """A module that passes a word on, and turns unknown bits (``x``) into 0 in Icarus.

    It stands in front of sums in which some words do not matter. Why: an unknown bit of such a
    word would make the whole sum unknown in simulation. In hardware the module is a wire.

    Parameters
    ----------
    width : int
        Bits of the word.

    Examples
    --------
    >>> UnknownToZero(4).shared_module.name
    'known_4'
    """

    width: int

    @property
    def shared_module(self) -> SharedModule:
        """The module as a `SharedModule`, which other modules contain."""
        return SharedModule(
            f"known_{self.width}",
            "A word; in Icarus, of which unknown bits are 0.",
            {"word": self.width, "known": self.width},
            _add_wire,
            self,
        )


def _add_wire(m: Module, word: Value, known: Value) -> None:
    """Add the logic of `UnknownToZero`: one wire from `word` to `known`."""
    m.d.comb += known.eq(word)


def unmerged_register(m: Module, value: Value, *, name: str) -> Value:
    """Return a value one cycle later, from a register that synthesis keeps (`UNMERGED`).

    Parameters
    ----------
    m : Module
        The module that takes the register.
    value : Value
        The value, of any width.
    name : str
        The name of the register.
    """
    held = Signal(len(value), name=name, reset_less=True, attrs=UNMERGED)
    m.d.sync += held.eq(value)
    return held


def delay_value(m: Module, value: Value, cycles: int, name: str = "") -> Value:
    """Return a value some cycles later, from a chain of registers.

    Calls for the same value in the same module share one chain: a value delayed by 2 and by 3
    cycles takes three registers. The registers are not reset.

    Parameters
    ----------
    value : Value
        A constant, or a value of 0 bits, is returned as it is.
    cycles : int
        Clock cycles, which is the number of registers.
    name : str
        The beginning of the names of the registers; by default the name of the signal. The
        number of cycles follows, as in ``node_d2``.
    """
    if isinstance(value, Const) or not len(value) or not cycles:
        return value
    lines = _lines.setdefault(m, {})
    line, at = lines.get(_bits_key(value)) or (_DelayLine(name or _line_name(value), [value]), 0)
    lines[_bits_key(value)] = line, at
    while len(line.stages) <= at + cycles:
        stage = Signal(len(value), reset_less=True, name=f"{line.name}_d{len(line.stages)}")
        m.d.sync += stage.eq(line.stages[-1])
        lines[_bits_key(stage)] = line, len(line.stages)
        line.stages.append(stage)
    return line.stages[at + cycles]


class _DelayLine(NamedTuple):
    """A chain of registers: ``stages[k]`` holds the value k cycles later, from k = 0 on."""

    name: str
    stages: list[Value]


#: In each module, the delay line and the stage of each value that lies in a delay line.
_lines: WeakKeyDictionary[Module, dict[tuple[int, int, int], tuple[_DelayLine, int]]] = (
    WeakKeyDictionary()
)


def _bits_key(value: Value) -> tuple[int, int, int]:
    """Return a key that is equal for two slices of the same bits of a signal.

    The key consists of the identity of the signal, the first bit, and the bit after the last. Why:
    Amaranth makes a new object for each slice, so that equal slices differ as objects.
    """
    start, bits = 0, len(value)
    while isinstance(value, ast.Slice):
        value, start = value.value, start + value.start
    return id(value), start, start + bits


def _line_name(value: Value) -> str:
    """Return the name of the signal of which `value` is a slice, or "later" for an expression."""
    while isinstance(value, ast.Slice):
        value = value.value
    return value.name if isinstance(value, Signal) else "later"


def delay_pulse(m: Module, pulse: Value, cycles: int, *, name: str) -> Value:
    """Return pulses some cycles later, from registers that a reset clears.

    Why not `delay_value`: its registers are not reset, so a pulse on its way would arrive after the
    reset.

    Parameters
    ----------
    m : Module
        The module that takes the registers.
    pulse : Value
        The signal with the pulses, of any width.
    cycles : int
        Clock cycles of the delay; 0 for no register.
    name : str
        The name of the registers.
    """
    for _ in range(cycles):
        later = Signal(len(pulse), name=name)
        m.d.sync += later.eq(pulse)
        pulse = later
    return pulse
