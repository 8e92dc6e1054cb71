"""Machine: symbolic execution of all gates of a fabric, cycle by cycle, for many runs at once.

Each module is executed as a gate program over all of its instances and runs. Links are executed as
delay lines (`units`). Host ports, read trees, buses and streams have proofs of their own and are
left out; other code drives their nets.

A *class* is here a set of bit positions of a word, at which the operators treat bits alike (see
`units`). Only one bit of each class is executed, because `alike` proves that the others behave in
the same way. A *net* is a wire of the top, and the array `nets` has one row for each bit of a net.
*Relevant* bits are those on which an executed output depends.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from ..rtl.netlist import Role
from ..topology import IntArray
from .gate_program import GateProgram
from .gates import OPERATOR_INPUT, WORDS_OUT, Bit, GateModule, GateText
from .snapshot import Snapshot
from .symbols import UNKNOWN
from .units import bit_classes, delay_line_module, link_registers, neutral_bits

if TYPE_CHECKING:
    from ..rtl import Fabric
    from .sums import Sums

__all__ = ["SymbolicMachine", "Override"]

#: Values that replace the nets at inputs of the instances of a module: by port, of shape (relevant
#: bits, instances, runs).
Override = Mapping[str, IntArray]

#: Outputs that carry words between nodes, and from operators.
WORD_OUTPUTS = frozenset({"tx", "arrived", "result"})

#: Roles that are left out of the execution; they have proofs of their own.
SEPARATE_ROLES = {Role.HOST, Role.READ_TREE, Role.BUS, Role.STREAM}


@dataclass
class _ModuleGroup:
    """All instances of a module, with the program that executes its gates.

    Parameters
    ----------
    names : list of str
        Names of the instances.
    program : GateProgram
        The gates of the module; bits on which no executed output depends are left out.
    inputs, outputs : dict of str to ndarray of int, shape (bits, instances)
        Port -> for each bit and each instance, the row in `SymbolicMachine.nets` of the connected
        net.
    """

    names: list[str]
    program: GateProgram
    inputs: dict[str, IntArray]  # numbers of nets, shape (bits, instances)
    outputs: dict[str, IntArray]


class SymbolicMachine:
    """Symbolic simulator of all gates of a fabric, for several runs at once.

    Parameters
    ----------
    text : GateText
        The emitted Verilog as gates.
    sums : Sums
        Numbers that stand for the words of messages and their sums.

    Attributes
    ----------
    runs : int
        Number of runs that are executed at once.
    positions : list of int
        Positions of the bits of a word that are simulated. Each other bit behaves like one of these
        bits, see `units.bit_classes`.
    nets : ndarray of int, shape (bits, runs)
        Symbolic value of each bit of the top.
    numbers : dict of Bit to int
        Bit of the top -> its row in `nets`.
    watch : function of (nets) or None
        Observer of the nets, called in every cycle.
    """

    def __init__(self, fabric: Fabric, text: GateText, sums: Sums) -> None:
        self.text, self.runs, self._fabric = text, 1, fabric
        self._width = fabric.width
        self.positions = [positions[0] for positions in bit_classes(fabric)]
        self._code: IntArray | None = None
        self.numbers: dict[Bit, int] = {"0": 0, "1": 1, "x": 2, "z": 2}
        self.sums = sums
        roles = fabric.netlist.roles
        left_out = {fabric.prefix + name for name, role in roles.items() if role in SEPARATE_ROLES}
        self.groups: dict[str, _ModuleGroup] = {}
        members: dict[str, list[str]] = {}
        for name, instance in text.instances.items():
            if instance.module not in left_out:
                members.setdefault(instance.module, []).append(name)
        links = {fabric.prefix + n: count for n, count in link_registers(fabric).items()}
        for module, names in members.items():
            found = text.modules[module]
            if module in links and "sends" not in found.inputs:
                found = delay_line_module(module, self._width, links[module])
            self._add_group(found, names)
        self._order = self._execution_order()
        self._active = self._order
        self.values: dict[str, IntArray] = {}
        self.watch: Callable[[IntArray], None] | None = None
        self.prepare_runs(1)

    def prepare_runs(self, runs: int) -> None:
        """Set the number of runs; all nets become unknown, and no operator is chosen."""
        self.runs = runs
        self.nets: IntArray = np.full((len(set(self.numbers.values())), runs), UNKNOWN, np.int32)
        self.nets[0], self.nets[1] = 0, 1
        self._code = self.sums.neutral = None

    def choose_operators(self, operations: Sequence[int]) -> None:
        """Choose the operator of each run; no effect on a fabric without operators.

        Parameters
        ----------
        operations : sequence of int
            For each run, the number of its operator.
        """
        if unit := self._fabric.operator_unit:
            self._code = np.array([unit.operator_codes[number] for number in operations])
            bits = [neutral_bits(self._fabric, position) for position in self.positions]
            self.sums.neutral = np.array(bits)[:, list(operations)]

    def _net_row(self, bit: Bit) -> int:
        """Return the row in `nets` of a bit of the top; a new bit gets the next row."""
        return self.numbers.setdefault(bit, len(self.numbers) - 1)

    def _add_group(self, module: GateModule, names: list[str]) -> None:
        """Add all instances of a module to the machine.

        `names` are the names of the instances. Of each word at an output, only the bits at
        `positions` are simulated.
        """
        width, wanted = self._width, {}
        for port, bits in module.outputs.items():
            every = range(len(bits))
            wanted[port] = [*every]
            if port in WORDS_OUT:
                starts = every[: len(bits) - len(bits) % width : width]
                wanted[port] = [start + position for start in starts for position in self.positions]
        instances = [self.text.instances[name] for name in names]
        roms = [each.rom for each in instances if each.rom]
        program = GateProgram(module, wanted, sums=self.sums, contents=roms)
        pins = [each.pins for each in instances]

        def net_rows(ports: Mapping[str, list[int]]) -> dict[str, IntArray]:
            return {
                port: np.array([[self._net_row(p[port][k]) for p in pins] for k in bits], np.intp)
                for port, bits in ports.items()
                if bits and port in pins[0] and port != "clk"
            }

        self.groups[module.name] = _ModuleGroup(
            names, program, net_rows(program.inputs), net_rows(program.outputs)
        )

    def _execution_order(self) -> list[str]:
        """Return the names of the modules in the order of their execution within a cycle.

        If module B reads a combinational output of module A, then A comes before B.
        """
        driver = {
            int(net): module
            for module, group in self.groups.items()
            for port, numbers in group.outputs.items()
            for net in numbers[~group.program.is_independent_of_inputs(port)].ravel()
        }
        needs = {
            module: {
                driver[net]
                for numbers in group.inputs.values()
                for net in numbers.ravel().tolist()
                if net in driver
            }
            for module, group in self.groups.items()
        }
        return list(TopologicalSorter(needs).static_order())

    # States

    def unknown_state(self) -> Snapshot:
        """Return a state in which all registers and memories are unknown."""
        states = {
            m: g.program.unknown_state(len(g.names) * self.runs) for m, g in self.groups.items()
        }
        return Snapshot(states)

    # Cycles

    def settle_nets(
        self,
        now: Snapshot,
        driven: Mapping[str, IntArray],
        overrides: Mapping[str, Override] = MappingProxyType({}),
        *,
        only: Collection[str] | None = None,
    ) -> None:
        """Compute all nets of a cycle from the state and the inputs; the state is not changed.

        Parameters
        ----------
        now : Snapshot
            State of registers and memories.
        driven : dict of str to ndarray of int, shape (bits, runs) or (bits, 1)
            Values of nets that no executed module drives: inputs of the top, and for example the
            outputs of the host port. A net of this kind is unknown if it has no value here.
        overrides : dict of str to Override
            Module -> values at input ports of its instances, which replace the values of the
            connected nets.
        only : collection of str, optional
            Modules to execute. All other nets keep their values of the last call, and `driven` has
            no effect. By default all modules are executed.

        Raises
        ------
        ValueError
            If, with `only`, an output that carries no words would change.
        """
        self._active = [m for m in self._order if only is None or m in only]
        if only is None:
            self._drive_inputs(driven)
        for module in self._active:
            # Registered outputs first, since other modules may read them.
            group = self.groups[module]
            v = self.values[module] = group.program.begin_cycle(
                now.states[module], len(group.names) * self.runs
            )
            for port, numbers in group.outputs.items():
                here = group.program.is_independent_of_inputs(port)
                if here.any():
                    self._set_nets(numbers[here], group.program.outputs_of(v, port)[here])
        for module in self._active:
            self._execute_module(module, now, overrides.get(module, {}))
        if self.watch is not None:
            self.watch(self.nets)

    def _drive_inputs(self, driven: Mapping[str, IntArray]) -> None:
        """Make all nets unknown, and set those that are driven from outside."""
        nets = self.nets
        nets[3:] = UNKNOWN
        for name, value in driven.items():
            bits = self.text.nets[name]
            known = [(k, self.numbers[bit]) for k, bit in enumerate(bits) if bit in self.numbers]
            if known:
                at, to = zip(*known, strict=True)
                nets[list(to)] = np.broadcast_to(value, (len(bits), self.runs))[list(at)]

    def _execute_module(self, module: str, now: Snapshot, override: Override) -> None:
        """Execute the gates of all instances of a module, and set the nets at its outputs.

        `now` is the state of the registers. `override` has values for some inputs, which replace
        the values of the connected nets.
        """
        group, given = self.groups[module], {}
        for port, numbers in group.inputs.items():
            shape = len(numbers), len(group.names), self.runs
            values = self.nets[numbers]
            if port in override:
                values = np.broadcast_to(override[port], shape)
            given[port] = values.reshape(len(numbers), -1)
        if self._code is not None:
            for port in group.program.inputs:
                if port.startswith(OPERATOR_INPUT):
                    bits = self._code >> int(port.removeprefix(OPERATOR_INPUT)) & 1
                    given[port] = np.tile(bits, len(group.names))[None]
        v = group.program.finish_cycle(self.values[module], now.states[module], given)
        for port, numbers in group.outputs.items():
            shown = group.program.outputs_of(v, port)
            steady = len(self._active) < len(self._order) and port not in WORDS_OUT
            if steady and (self.nets[numbers].reshape(shown.shape) != shown).any():
                raise ValueError(f"Output {port} of {module} must stay while all else is at rest")
            self._set_nets(numbers, shown)

    def forget_words(self) -> None:
        """Set the words on the links between nodes, and the results of operators, to unknown."""
        for group in self.groups.values():
            for port in WORD_OUTPUTS & group.outputs.keys():
                self.nets[group.outputs[port]] = UNKNOWN

    def _set_nets(self, numbers: IntArray, values: IntArray) -> None:
        self.nets[numbers] = values.reshape(*numbers.shape, -1)

    def next_state(self, now: Snapshot) -> Snapshot:
        """Return the state after the clock edge at the end of the cycle.

        `now` is the state in this cycle, and `settle_nets` has computed the nets. Modules that it
        did not execute keep their state. Memories are changed in place.
        """
        states = dict(now.states)
        for module in self._active:
            program = self.groups[module].program
            states[module] = program.next_state(self.values[module], now.states[module])
        return Snapshot(states)

    def net_values(self, name: str) -> IntArray:
        """Return the symbolic bits of the net `name` of the top, shape (bits, runs)."""
        return self.nets[[self.numbers.get(bit, 2) for bit in self.text.nets[name]]]

    def output_values(self, module: str, port: str) -> IntArray:
        """Return the symbolic bits of output `port` of a module, for all of its instances.

        The shape is (executed bits, instances, runs).
        """
        return self.nets[self.groups[module].outputs[port]]
