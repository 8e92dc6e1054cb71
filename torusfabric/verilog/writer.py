"""`write_module`: from one Amaranth component to one Verilog module.

The users are `module_texts`, for the leaf modules of a netlist, and the synthesis report of a full
crossbar.

A component inside the design becomes part of the same module; the names of its signals begin with
the name of the component. Statements of a clock domain become ``always`` blocks, logic becomes
``assign`` (see ``statements`` for the reason), a memory becomes an array with one block for each
port.

A *fragment* is the hardware of a component after elaboration by Amaranth; its subfragments are the
components inside.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from amaranth.hdl import ClockDomain, Const, Elaboratable, Fragment, Instance, Signal

from ..errors import InputError
from ..rtl.amaranth_private import (
    MemoryDescription,
    MemoryInstance,
    MemoryPortDescription,
    describe_memory,
)
from ..rtl.modules import SharedInstance, SharedModule
from .expressions import ExpressionWriter
from .module_text import (
    TOOL_RULE,
    Memory,
    MemoryRule,
    MemoryStyle,
    ModuleText,
    Port,
    Structure,
    guard_initial_contents,
    memory_attributes,
)
from .names import KEYWORDS, SignalNames, all_driven_signals, multiply_driven_signals
from .statements import (
    Process,
    StatementWriter,
    assigned_values,
    group_into_processes,
    merge_plain_processes,
)
from .syntax import (
    comma_list,
    constant,
    indent_lines,
    range_of,
    statement_block,
    wrap_lines,
)

__all__ = ["LUT4", "Heading", "write_module"]

#: Macro for devices whose LUTs have four inputs. Synthesis then keeps the stages of a multiplexer,
#: each of which is one such LUT.
LUT4 = "TORUSFABRIC_LUT4"

#: Attribute of the registers of a synchronizer: placement keeps them next to each other.
SYNCHRONIZER = '(* ASYNC_REG = "TRUE" *) '

#: Attributes of registers that synthesis must not merge with equal registers: Vivado and Quartus
#: read them at the declaration, Yosys at the assignment.
UNMERGED_DECLARATION, UNMERGED_ASSIGNMENT = '(* keep = "true", dont_merge *) ', "(* keep *) "

#: Words of a memory that one ``initial`` block sets. Why: Yosys reads a block in quadratic time.
WORDS_IN_BLOCK = 64


@dataclass(frozen=True)
class Heading:
    """The name of a module, the comment above it, and its clock ports.

    Parameters
    ----------
    name : str
        Name of the module without the prefix.
    prefix : str
        Prefix of the name of this module, and of the names of the modules inside.
    about : str
        Comment above the module, one line; empty for no comment.
    clocked : bool
        True if the clock and the reset are ports even if nothing in the module reads them.
    """

    name: str
    prefix: str = ""
    about: str = ""
    clocked: bool = False


def write_module(
    heading: Heading,
    design: Elaboratable,
    ports: Mapping[str, Signal],
    *,
    outputs: Collection[str] = (),
    instead: Mapping[str, str] = MappingProxyType({}),
    rule: MemoryRule = TOOL_RULE,
) -> ModuleText:
    """Write an Amaranth component as one Verilog module.

    Parameters
    ----------
    heading : Heading
        Name of the module, comment above it, and its clock ports.
    design : Elaboratable
        Hardware of the module.
    ports : dict of str to Signal
        Ports by name, in the order of the module. The clocks and resets that the design uses come
        before them and are left out here.
    outputs : collection of str
        Ports that are outputs even if nothing drives them.
    instead : dict of str to str
        Macro -> alternative body of the module, for ``ifdef``. The first macro that is defined
        decides.
    rule : MemoryRule
        RAM style of each memory.

    Raises
    ------
    InputError
        If a port is called like a keyword, bits of a signal are driven in different clock domains,
        a read port is transparent, or other hardware has no Verilog form.

    Examples
    --------
    A counter of 2 bits becomes a module with a clocked block.

    >>> from amaranth.hdl import Module
    >>> m, count = Module(), Signal(2, name="count")
    >>> m.d.sync += count.eq(count + 1)
    >>> print(write_module(Heading("counter"), m, {"count": count}).text, end="")
    module counter (
      input wire clk,
      input wire rst,
      output reg [1:0] count
    );
      always @(posedge clk) begin
        count <= count + 2'd1;
        if (rst) count <= 2'd0;
      end
    endmodule
    """
    return _ModuleWriter(heading, Fragment.get(design, None), ports, rule).write(outputs, instead)


def _check_form(ports: Mapping[str, Signal], fragment: Fragment) -> None:
    """Check that ports are no keywords, and that all bits of a signal have one clock domain."""
    for name in KEYWORDS & ports.keys():
        raise InputError(
            f"Port {name} must not be called like a keyword of Verilog; call it {name}_"
        )
    for signal in multiply_driven_signals(fragment):
        raise InputError(
            f"Signal {signal.name} must be driven in one clock domain of one component, or by "
            "logic; give the bits of each a signal of their own, and join them by Cat()"
        )


class _ModuleWriter:
    """Writer of one Verilog module from a component that Amaranth has elaborated (a *fragment*).

    `write` converts its statements, memories and instances one after another.
    """

    def __init__(
        self, heading: Heading, fragment: Fragment, ports: Mapping[str, Signal], rule: MemoryRule
    ) -> None:
        self._heading, self._ports, self._rule = heading, ports, rule
        self._design = fragment.prepare([(key, port, None) for key, port in ports.items()])
        _check_form(ports, self._design.fragment)
        outer = [signal for _, signal, _ in self._design.ports]
        self._names = SignalNames(ports, outer, self._design.fragment)
        self._declared: list[str] = []
        self._registers: set[str] = set()
        self._apart: set[str] = set()
        self._held: dict[str, int] = {}
        self._contents: list[str] = []
        self._memories: dict[str, Memory] = {}
        self._children = Counter[str]()
        self._shared: dict[str, SharedModule] = {}
        self._expressions = ExpressionWriter(self._names)
        self._nets, self._body = self._expressions.nets, self._expressions.body
        self._statements = StatementWriter(self._expressions)

    # The module

    def write(self, shown: Collection[str], instead: Mapping[str, str]) -> ModuleText:
        """Return the module, as Verilog and as data.

        `shown` lists ports that are outputs even if nothing drives them, and `instead` maps macros
        to alternative bodies of the module; see `write_module`.
        """
        fragment = self._design.fragment
        driven = all_driven_signals(fragment)
        self._write_fragment(fragment, "")
        signals = self._declare_signals(driven)
        ports = {n: Port("input") for n in self._names.clocks
                 if self._heading.clocked or n in self._names.read}  # fmt: skip
        ports |= self._declare_ports({id(signal) for signal in driven}, shown)
        heads = [self._port_declaration(name, port) for name, port in ports.items()]
        name = self._heading.prefix + self._heading.name
        about = self._heading.about
        lines = [*[f"// {about}"] * bool(about), f"module {name}" + (" (" if heads else ";")]
        if heads:
            lines += [f"  {head}," for head in heads[:-1]] + [f"  {heads[-1]}", ");"]
        for number, (define, other) in enumerate(instead.items()):
            lines += [f"`{'elsif' if number else 'ifdef'} {define}", other]
        lines += ["`else"] * bool(instead)
        nets = [comma_list(head, names, ";") for head, names in self._nets.items()]
        lines += indent_lines([*nets, *self._declared, *self._body, *self._contents])
        lines += ["`endif"] * bool(instead)
        return ModuleText(
            "\n".join([*wrap_lines(lines), "endmodule\n"]),
            Structure(ports, signals, self._memories, dict(self._held)),
            dict(self._children),
            tuple(self._shared.values()),
        )

    def _declare_signals(self, driven: Iterable[Signal]) -> dict[str, int]:
        """Declare all driven signals that are no ports; return name -> width in bits."""
        signals = {}
        kept: dict[str, list[str]] = {}
        for signal in driven:
            name = self._names[signal]
            if name in self._ports or not len(signal):
                continue
            signals[name] = len(signal)
            head = f"{'reg' if name in self._registers else 'wire'} {range_of(len(signal))}"
            if "keep" in signal.attrs:
                kept.setdefault(head, []).append(name)
                continue
            attribute = SYNCHRONIZER * (id(signal) in self._names.synchronizers)
            attribute += UNMERGED_DECLARATION * (name in self._apart)
            self._nets.setdefault(f"{attribute}{head}", []).append(name)
        for head, names in kept.items():
            guarded = [f"`ifdef {LUT4}", "(* keep *)", "`endif"]
            self._declared += [*guarded, comma_list(head, names, ";")]
        return signals

    def _declare_ports(self, driven: set[int], shown: Collection[str]) -> dict[str, Port]:
        """Return the ports of the module by name, without clocks and resets.

        An output that shares its signal with another port, or that nothing drives, gets an
        assignment here, because no statement of the module assigns it.

        Parameters
        ----------
        driven : set of int
            ``id`` of each signal that something in the module drives.
        shown : collection of str
            Ports that are outputs even if nothing in the module drives them.
        """
        ports = {}
        for name, port in self._ports.items():
            known = self._names[port]
            is_output = id(port) in driven or name in shown
            if is_output and id(port) not in driven:
                self._body.append(f"assign {name} = {constant(port.init, len(port))};")
            elif known != name:
                self._body.append(f"assign {name} = {known};")
            ports[name] = Port("output" if is_output else "input", len(port))
        return ports

    def _port_declaration(self, name: str, port: Port) -> str:
        """Return the declaration of a port called `name`."""
        register = name in self._registers and self._names[self._ports[name]] == name
        apart = UNMERGED_DECLARATION * (register and name in self._apart)
        net = "reg" if register else "wire"
        return f"{apart}{port.direction} {net} {range_of(port.width)}{name}"

    def _write_fragment(self, fragment: Fragment, prefix: str) -> None:
        """Write the statements, memories and instances of a component and of all components inside.

        `prefix` is the beginning of the names of its memories and instances.
        """
        for domain, statements in fragment.statements.items():
            clock = None if domain == "comb" else fragment.domains[domain]
            for process in merge_plain_processes(group_into_processes(clock, statements)):
                self._write_process(process)
        for inner, name, _ in fragment.subfragments:
            if isinstance(inner, MemoryInstance):
                memory = describe_memory(inner)
                self._write_memory(memory, inner.domains, prefix + (name or memory.name))
            elif isinstance(inner, Instance):
                self._write_instance(inner, self._names.new_name(prefix + (name or inner.type)))
            self._write_fragment(inner, f"{prefix}{name}_" if name else prefix)

    # Statements

    def _write_process(self, process: Process) -> None:
        """Write a process, which drives one set of signals: an ``always`` block, or assignments."""
        if process.domain is None:
            self._write_logic(process)
            return
        signals = [signal for signal in process.signals if len(signal)]
        if not signals:
            return
        clocked = {self._names[signal]: len(signal) for signal in signals}
        self._registers |= clocked.keys()
        self._apart |= clocked.keys() if process.is_unmerged else set()
        self._held |= clocked
        domain = process.domain
        lines = self._statements.statement_lines(process.statements)
        reset_too = [each for each in signals if not each.reset_less]
        cleared = self._initial_assignments(reset_too, "<=") if domain.rst is not None else []
        edge = f"{domain.clk_edge}edge {self._names.name_for_reading(domain.clk)}"
        if cleared:
            reset = self._names.name_for_reading(domain.rst)
            if domain.async_reset:
                edge += f" or posedge {reset}"
                lines = [f"if ({reset}) begin", *indent_lines(cleared), "end else begin",
                         *indent_lines(lines), "end"]  # fmt: skip
            else:
                lines += statement_block(f"if ({reset})", cleared)
        self._append_block(
            f"always @({edge})", lines, attribute=UNMERGED_ASSIGNMENT * process.is_unmerged
        )
        # Loaded tables survive a reset; their first contents are those the fabric is built with.
        kept = [each for each in signals if each.reset_less and each.init]
        if kept:
            self._append_block("initial", self._initial_assignments(kept, "="))

    def _append_block(self, head: str, lines: Sequence[str], *, attribute: str = "") -> None:
        """Append a block of `lines` to the module; `head` is its first line, such as ``initial``.

        `attribute` is Verilog that stands in front of the head.
        """
        self._body.append(attribute + "\n".join(statement_block(head, lines)))

    def _initial_assignments(self, signals: Iterable[Signal], sign: str) -> list[str]:
        """Return the lines that assign signals their initial values: ``count <= 2'd0;``.

        `sign` is ``<=`` or ``=``.
        """
        return [
            f"{self._names[signal]} {sign} {constant(signal.init, len(signal))};"
            for signal in signals
        ]

    def _write_logic(self, process: Process) -> None:
        """Write the assignments (``assign``) of a process of combinational logic."""
        if process.signals and {id(signal) for signal in process.signals} <= self._names.joined:
            return
        for target, value in assigned_values(process, self._expressions):
            self._body.append(f"assign {target} = {value};")

    # Memories and instances

    def _write_memory(
        self, memory: MemoryDescription, domains: Mapping[str, ClockDomain], name: str
    ) -> None:
        """Write a memory, its initial contents and its ports.

        `domains` are the clock domains of its ports by name. The memory is called `name`, or, if
        this is taken, by a similar name.
        """
        name, width, depth = self._names.new_name(name), memory.width, memory.depth
        at_once = any(port.domain == "comb" for port in memory.reads)
        style = self._rule.choose_style(width, depth, at_once=at_once) if memory.writes else None
        if style is MemoryStyle.TOOL:
            style = MemoryStyle(memory.attributes.get("ram_style", style.value))
        attributes = memory_attributes(style) if style else []
        declared = f"reg {range_of(width)}{name} [0:{depth - 1}];"
        if len(attributes) == 1:
            attributes, declared = [], f"{attributes[0]} {declared}"
        self._declared += [*attributes, declared]
        self._contents += guard_initial_contents(
            style, self._initial_contents(name, memory.rows, width)
        )
        self._memories[name] = Memory(width, memory.rows, style)
        for port in memory.writes:
            self._append_clocked(domains[port.domain], [*self._write_port_lines(port, name)])
        for port in memory.reads:
            self._write_read(domains, port, name)

    def _write_port_lines(self, port: MemoryPortDescription, name: str) -> Iterator[str]:
        """Yield the lines of a write port of memory `name`, a statement for each write enable."""
        size = len(port.data) // len(port.enable)
        for k in range(len(port.enable)):
            word = f"{name}[{self._port_address(port)}]"
            if len(port.enable) > 1:
                word += f"[{(k + 1) * size - 1}:{k * size}]" if size > 1 else f"[{k}]"
            line = f"{word} <= {self._expressions.bits(port.data, k * size, (k + 1) * size)};"
            if not isinstance(port.enable, Const):
                yield from statement_block(
                    f"if ({self._expressions.bits(port.enable, k, k + 1)})", [line]
                )
            elif port.enable.value >> k & 1:
                yield line

    def _port_address(self, port: MemoryPortDescription) -> str:
        """Return the expression of the address of a port; a sum or difference gets a wire.

        Why: Icarus keeps the carry of a sum that stands in an index. A memory of one word has an
        address without bits.
        """
        if not len(port.address):
            return "0"
        address = self._expressions.all_bits(port.address)
        if not re.search(r" [+-]\s", address):
            return address
        return self._expressions.helper_wire(address, len(port.address), called="address")

    def _write_read(
        self, domains: Mapping[str, ClockDomain], port: MemoryPortDescription, name: str
    ) -> None:
        """Write a read port of the memory `name`; `domains` are the clock domains by name.

        An asynchronous port becomes an assignment, any other a clocked block.
        """
        data, address = port.data, self._port_address(port)
        assert isinstance(data, Signal), "a read port shows its word in a signal"
        shown = self._names[data]
        if port.domain == "comb":
            self._body.append(f"assign {shown} = {name}[{address}];")
            return
        if port.transparent:
            raise InputError(
                f"Memory {name} must have read ports that show the word before a write; leave "
                "transparent_for out of read_port()"
            )
        self._registers.add(shown)
        self._held[shown] = len(data)
        lines = [f"{shown} <= {name}[{address}];"]
        if self._expressions.constant_bits(port.enable) != "1":
            lines = statement_block(f"if ({self._expressions.all_bits(port.enable)})", lines)
        self._append_clocked(domains[port.domain], lines)

    def _initial_contents(self, name: str, rows: Sequence[int], width: int) -> list[str]:
        """Return the Verilog that sets the initial contents of memory `name`.

        `rows` has the word at each address, of `width` bits. If all are 0, a loop sets them.
        """
        if any(rows):
            lines = [f"{name}[{k}] = {constant(row, width)};" for k, row in enumerate(rows)]
            blocks = (lines[k : k + WORDS_IN_BLOCK] for k in range(0, len(lines), WORDS_IN_BLOCK))
            return ["\n".join(["initial begin", *indent_lines(block), "end"]) for block in blocks]
        index = self._names.new_name("index")
        self._nets.setdefault("integer ", []).append(index)
        loop = f"for ({index} = 0; {index} < {len(rows)}; {index} = {index} + 1)"
        return statement_block(f"initial {loop}", [f"{name}[{index}] = {constant(0, width)};"])

    def _append_clocked(self, domain: ClockDomain, lines: list[str]) -> None:
        self._append_block(
            f"always @({domain.clk_edge}edge {self._names.name_for_reading(domain.clk)})", lines
        )

    def _write_instance(self, instance: Instance, name: str) -> None:
        """Write an instance of another module, and add the module to the children of this one.

        `name` is the name of the instance.
        """
        module = f"{self._heading.prefix}{instance.type}"
        self._children[module] += 1
        for origin in instance.origins or ():
            if isinstance(origin, SharedInstance):
                self._shared[origin.module.name] = origin.module
        parameters = [
            f".{key}({constant(v.value, len(v)) if isinstance(v, Const) else v})"
            for key, v in instance.parameters.items()
        ]
        pins = []
        for key, (value, direction) in instance.ports.items():
            text = (
                self._expressions.all_bits(value)
                if direction == "i"
                else self._expressions.assignment_target(value)
            )
            pins.append(f".{key}({text})")
        given = f" #({', '.join(parameters)})" if parameters else ""
        self._body.append(comma_list(f"{module}{given} {name} (", pins, ");"))
