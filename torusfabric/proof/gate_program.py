"""Gate programs: symbolic execution of the gates of a module, for many instances at once.

A gate program contains only the gates, registers and memory bits that the requested outputs depend
on: the *relevant* ones. The symbolic values of all relevant bits in one cycle are an array::

    row 0, 1, 2     the constants 0, 1 and unknown
    other rows      one relevant bit of the module each
    columns         instances (or instances and runs: the runs of one instance side by side)

Gates of equal kind and depth form a batch, which is one numpy operation over all instances. Each
cycle has two phases: `begin_cycle` computes bits that depend on registers only, and `finish_cycle`
computes the others from inputs.

A *row* is here the index of a bit in this array. A symbolic value is a number that stands for a bit
(see `symbols`). A bit is *unknown* if it can be 0 or 1.

In the functions, `v` is this array, `state` has the registers and memories before the cycle, and
`words` has all words of one memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from ..topology import BoolArray, IntArray
from .gates import NEUTRAL, Bit, Gate, GateModule, Ram, cone_of_influence
from .sums import Sums
from .symbols import UNKNOWN, and_bits, invert_bits, mux_bits, number_of_bits, or_bits, xor_bits

__all__ = ["GateProgram", "ModuleState"]

#: Rows of the constant bits.
CONSTANTS: dict[Bit, int] = {"0": 0, "1": 1, "x": 2, "z": 2}


@dataclass(frozen=True)
class GateMemory:
    """The relevant bits of a memory, with ports given as rows of the array of values.

    Parameters
    ----------
    size : int
        Number of words.
    reads : list of (ndarray, ndarray)
        Rows of the address bits and of the data bits of each read port.
    writes : list of (ndarray, ndarray, ndarray)
        Rows of the address bits, data bits and enable bits of each write port.
    contents : ndarray of int, shape (words, bits, instances or 1), or None
        Contents of a ROM; None for a memory that is written.
    collides : bool
        True if a word is unknown when it is read and written in the same cycle.
    """

    size: int
    reads: list[tuple[IntArray, IntArray]]
    writes: list[tuple[IntArray, IntArray, IntArray]]
    contents: IntArray | None
    collides: bool

    def unknown_words(self, instances: int) -> IntArray:
        """Return the initial words, shape (words, bits, instances).

        They are the contents of a ROM; a memory that is written begins unknown.
        """
        if self.contents is not None:
            return self.contents
        width = len(self.reads[0][1])
        return np.full((self.size, width, instances), UNKNOWN, np.int32)

    def execute_reads(self, values: IntArray, words: IntArray) -> None:
        """Write the data bits of all read ports into `values`, the array of the values of all bits.

        `words` has the contents of the memory, shape (words, bits, instances). The data bits are
        unknown if the address is unknown, or, with `collides`, if the same word may be written in
        this cycle.
        """
        for address, data in self.reads:
            at = number_of_bits(values[address])
            known = (at >= 0) & (at < self.size)
            # Columns are instances times runs, with the runs of an instance side by side.
            columns = np.arange(values.shape[1]) * words.shape[2] // values.shape[1]
            read = words[np.where(known, at, 0), :, columns].T
            for into, _, enable in self.writes if self.collides else ():
                writing = (values[enable] != 0).any(axis=0)
                if writing.any():
                    known &= ~(writing & _may_be_equal(values, address, into))
            values[data] = np.where(known, read, UNKNOWN)

    def execute_writes(self, values: IntArray, words: IntArray) -> None:
        """Apply all write ports, with the bits in `values`, to `words` in place."""
        for address, data, enable in self.writes:
            _execute_write(words, values[address], values[data], values[enable])


def _relevant_memory(
    ram: Ram,
    bits: Collection[int],
    places: Callable[[Collection[Bit]], IntArray],
    roms: Sequence[str],
) -> GateMemory:
    """Return the relevant part of the memory `ram`.

    Parameters
    ----------
    bits : collection of int
        Relevant positions within a word.
    places : function of (collection of Bit) -> ndarray of int
        Returns the rows of some bits in the array of values.
    roms : sequence of str
        Contents of each instance, for a ROM whose instances differ.
    """
    chosen = sorted(bits)
    pick = lambda row: places([row[k] for k in chosen])
    contents = None
    if not ram.writes:
        rows = [_rom_words(ram, text)[:, chosen] for text in roms or [ram.initial]]
        contents = np.stack(rows, axis=-1)
        contents.flags.writeable = False
    return GateMemory(
        ram.size,
        [(places(address), pick(data)) for address, data in ram.reads],
        [(places(at), pick(data), pick(enable)) for at, data, enable in ram.writes],
        contents,
        ram.collides,
    )


def _execute_write(words: IntArray, address: IntArray, data: IntArray, enable: IntArray) -> None:
    """Apply one write port to `words`, in place.

    An address with unknown bits makes every word unknown that it could name.

    Parameters
    ----------
    words : ndarray of int, shape (words, bits, instances)
        All words of the memory.
    address, data, enable : ndarray of int
        Symbolic values of the address bits, the data bits, and the enable of each data bit.
    """
    active = (enable != 0).any(axis=0)
    if not active.any():
        return
    at = number_of_bits(address)
    open_ = np.nonzero(active & (at < 0))[0]
    if len(open_):
        # Group the columns by the known bits of their addresses, then overwrite all matching words.
        bits = address[:, open_]
        numbers = np.arange(len(words))[None] >> np.arange(len(address))[:, None] & 1
        forms, form_of = np.unique(np.where((bits == 0) | (bits == 1), bits, -1), axis=1,
                                   return_inverse=True)  # fmt: skip
        for number, form in enumerate(forms.T):
            there = np.nonzero(((form[:, None] < 0) | (form[:, None] == numbers)).all(axis=0))[0]
            here = open_[form_of.ravel() == number]
            for k in range(words.shape[1]):
                written = here[enable[k, here] != 0]
                words[there[:, None], k, written] = UNKNOWN
    columns = np.nonzero(active & (at >= 0) & (at < len(words)))[0]
    if len(columns):
        old, e, new = words[at[columns], :, columns].T, enable[:, columns], data[:, columns]
        words[at[columns], :, columns] = mux_bits(e, old, new).T


def _may_be_equal(values: IntArray, a: IntArray, b: IntArray) -> BoolArray:
    """Return True where two addresses may be equal, judged by their known bits.

    `a` and `b` are the rows of the bits of the addresses in the array `values`.
    """
    common = min(len(a), len(b))
    apart = (values[a[:common]] ^ values[b[:common]]) == 1
    for rest in (a[common:], b[common:]):
        apart = np.concatenate([apart, values[rest] == 1])
    may_meet: BoolArray = ~apart.any(axis=0)
    return may_meet


def _rom_words(ram: Ram, text: str) -> IntArray:
    """Return the bits of each word of the ROM `ram`; `text` has all bits, the last one first."""
    bits = np.frombuffer(text[::-1].ljust(ram.size * ram.width, "x").encode(), np.uint8)
    found = bits.astype(np.int32) - ord("0")
    found[found > 1] = UNKNOWN
    return found.reshape(ram.size, ram.width)


class ModuleState(NamedTuple):
    """State of all instances of a module: only its relevant registers and memory bits.

    Parameters
    ----------
    flops : ndarray of int, shape (registers, instances)
        Symbolic value of each register.
    rams : list of (ndarray of int, shape (words, bits, instances))
        Symbolic words of each memory.
    """

    flops: IntArray
    rams: list[IntArray]


class _Batch(NamedTuple):
    """Gates of one kind that do not depend on each other: rows of their outputs and operands."""

    kind: str
    y: IntArray
    a: IntArray
    b: IntArray
    s: IntArray


class GateProgram:
    """The relevant gates of a module in the order of execution.

    Parameters
    ----------
    outputs : dict of str to (list of int)
        Requested bits of each output.
    kept_as : type
        Numpy type of symbolic bits. If all bits are 0, 1 or unknown, a narrow type suffices.
    sums : Sums, optional
        Numbering of sums, for a module with operators.
    contents : sequence of str
        Contents of the ROM of each instance.

    Attributes
    ----------
    inputs, outputs : dict of str to (list of int)
        Relevant bits of each port.
    """

    def __init__(
        self,
        module: GateModule,
        outputs: Mapping[str, list[int]],
        *,
        kept_as: type[np.signedinteger[Any]] = np.int32,
        sums: Sums | None = None,
        contents: Sequence[str] = (),
    ) -> None:
        self._type, self._sums, self._roms = kept_as, sums, contents
        self.module, self.outputs = module, dict(outputs)
        wanted = [module.outputs[name][k] for name, bits in outputs.items() for k in bits]
        live = cone_of_influence(module, wanted)
        self._live = live
        self._number = dict(CONSTANTS)
        self.inputs = {
            name: [k for k, bit in enumerate(bits) if bit in live.bits]
            for name, bits in module.inputs.items()
        }
        for name, bits in self.inputs.items():
            for k in bits:
                self._add_row(module.inputs[name][k])
        flops = [flop for flop in module.flops if flop.q in live.bits]
        for flop in flops:
            self._add_row(flop.q)
        self.names = [module.names.get(flop.q, "") for flop in flops]
        self._asked: set[Bit] = {bit for bits in module.inputs.values() for bit in bits}
        steps = [*self._execution_order()]
        self._first, self._last = ([s for s, waits in steps if waits == late]
                                   for late in (False, True))  # fmt: skip
        self.bits = max(self._number.values()) + 1
        self._q, self._d = (self._rows_of([flop[k] for flop in flops]) for k in (0, 1))
        self._in = {
            n: self._rows_of([module.inputs[n][k] for k in b]) for n, b in self.inputs.items()
        }
        self._out = {
            n: self._rows_of([module.outputs[n][k] for k in b]) for n, b in outputs.items()
        }
        self._kept: BoolArray = np.ones(self.bits, bool)
        self._kept[2], self._kept[self._rows_of(self._asked)] = False, False

    def _add_row(self, bit: Bit) -> None:
        """Assign the next free row of the array of values to a bit, unless it has a row already."""
        if bit not in self._number:
            self._number[bit] = 3 + len(self._number) - len(CONSTANTS)

    def _rows_of(self, bits: Collection[Bit]) -> IntArray:
        """Return the row of each bit; bits that are not relevant get the row of the unknown bit."""
        return np.array([self._number.get(bit, 2) for bit in bits], np.intp)

    def _execution_order(self) -> Iterator[tuple[_Batch | int, bool]]:
        """Yield the steps of a cycle in order, and assign rows to the bits that they compute.

        Yields
        ------
        step : _Batch or int
            A batch of gates, or the number of a memory whose reads are executed.
        waits : bool
            True if the step depends on an input. All steps that depend on none come before those
            that do.
        """
        module, live = self.module, self._live
        needs: dict[Gate | int, list[Bit]] = {}
        gives: dict[Gate | int, list[int]] = {}
        for gate in module.gates:
            if gate.y in live.bits:
                needs[gate], gives[gate] = list(gate[2:]), [gate.y]
        self.rams: list[int] = sorted(live.rams)
        for number in self.rams:
            ram = module.rams[number]
            watched = [b for at, _, en in ram.writes for b in (*at, *en)] if ram.collides else []
            needs[number] = [bit for at, _ in ram.reads for bit in at] + [
                b for b in watched if b in live.bits
            ]
            gives[number] = [data[k] for _, data in ram.reads for k in sorted(live.rams[number])]
        level = self._execution_levels(needs, gives)
        ordered = sorted(level, key=level.__getitem__)
        for item in ordered:
            for bit in gives[item]:
                self._add_row(bit)
        self._memories = {
            number: _relevant_memory(
                module.rams[number], live.rams[number], self._rows_of, self._roms
            )
            for number in self.rams
        }
        for (waits, _, kind), group in groupby(ordered, key=level.__getitem__):
            batch = [*group]
            if isinstance(batch[0], int):
                yield batch[0], waits
            else:
                gates = (gate[1:] for gate in batch if isinstance(gate, Gate))
                columns = zip(*gates, strict=True)
                yield _Batch(kind, *(self._rows_of(column) for column in columns)), waits

    def _execution_levels(
        self, needs: dict[Gate | int, list[Bit]], gives: dict[Gate | int, list[int]]
    ) -> dict[Gate | int, tuple[bool, int, str]]:
        """Return the key by which gates and memories are sorted: (depends on inputs, depth, kind).

        Parameters
        ----------
        needs : dict of (Gate or int) to (list of Bit)
            Bits that a gate, or the reads of a memory, depend on.
        gives : dict of (Gate or int) to (list of int)
            Bits that it computes.
        """
        maker = {bit: item for item, bits in gives.items() for bit in bits}
        below = {item: [maker[bit] for bit in bits if bit in maker] for item, bits in needs.items()}
        level: dict[Gate | int, tuple[bool, int, str]] = {}
        try:
            for item in TopologicalSorter(below).static_order():
                waits = not self._asked.isdisjoint(needs[item])
                self._asked.update(gives[item] if waits else ())
                depth = 1 + max((level[each][1] for each in below[item]), default=0)
                # A kind of its own keeps each memory in a batch of its own.
                level[item] = waits, depth, item.kind if isinstance(item, Gate) else f"ram {item}"
        except CycleError:
            raise ValueError(f"Module {self.module.name} must be free of loops") from None
        return level

    def unknown_state(self, instances: int) -> ModuleState:
        """Return a state in which all registers and writable memories are unknown.

        Parameters
        ----------
        instances : int
            Number of columns: instances of the module, times the runs of each.
        """
        flops = np.full((len(self._q), instances), UNKNOWN, self._type)
        return ModuleState(flops, [self._memories[n].unknown_words(instances) for n in self.rams])

    def cycle_bits(self, state: ModuleState, inputs: Mapping[str, IntArray]) -> IntArray:
        """Return the values of all relevant bits in a cycle, shape (rows, instances).

        Parameters
        ----------
        state : ModuleState
            Registers and memories in this cycle.
        inputs : dict of str to ndarray of int, shape (relevant bits, instances)
            Values of inputs; missing inputs are unknown.
        """
        return self.finish_cycle(self.begin_cycle(state), state, inputs)

    def begin_cycle(self, state: ModuleState, instances: int | None = None) -> IntArray:
        """Return the array of values for a cycle; only rows that depend on no input are computed.

        Parameters
        ----------
        state : ModuleState
            Registers and memories in this cycle.
        instances : int, optional
            Number of instances; needed for a module without registers.
        """
        v = np.empty((self.bits, instances or state.flops.shape[1]), self._type)
        v[0], v[1], v[2] = 0, 1, UNKNOWN
        if len(self._q):
            v[self._q] = state.flops
        self._execute(self._first, v, state)
        return v

    def finish_cycle(
        self, v: IntArray, state: ModuleState, inputs: Mapping[str, IntArray]
    ) -> IntArray:
        """Compute the remaining rows of an array that `begin_cycle` made, and return the array.

        Parameters
        ----------
        v : ndarray of int, shape (rows, instances)
            Values of the cycle, changed in place.
        state : ModuleState
            Registers and memories in this cycle, as for `begin_cycle`.
        inputs : dict of str to ndarray
            Values of inputs, as for `cycle_bits`.
        """
        for name, numbers in self._in.items():
            if len(numbers):
                v[numbers] = inputs.get(name, UNKNOWN)
        self._execute(self._last, v, state)
        return v

    def _execute(self, steps: Iterable[_Batch | int], v: IntArray, state: ModuleState) -> None:
        """Execute `steps`, and write the results into the array of values `v`.

        A step is a batch, or the index of a memory, whose reads are executed. `state` has the
        contents of the memories.
        """
        for step in steps:
            if isinstance(step, int):
                self._memories[step].execute_reads(v, state.rams[self.rams.index(step)])
            else:
                v[step.y] = self._gate_outputs(step, v)

    def _gate_outputs(self, step: _Batch, v: IntArray) -> IntArray:
        """Return the output values of the batch `step`, given the values `v` of its operands."""
        a = v[step.a]
        match step.kind:
            case "NOT":
                return invert_bits(a)
            case "AND":
                return and_bits(a, v[step.b])
            case "OR":
                return or_bits(a, v[step.b])
            case "XOR":
                return xor_bits(a, v[step.b])
            case "SUM":
                assert self._sums is not None
                return self._sums.add_bits(a, v[step.b])
            case "ALIKE":
                return np.where(a == v[step.b], a, UNKNOWN)
            case "SAME":
                return np.where((v[step.b] == v[step.s]) & (v[step.b] >> 1 == 0), a, UNKNOWN)
            case kind if kind.startswith(NEUTRAL):
                assert self._sums is not None
                return self._sums.mark_identity(a, int(kind.removeprefix(NEUTRAL)))
        return mux_bits(v[step.s], a, v[step.b])

    def outputs_of(self, v: IntArray, name: str) -> IntArray:
        """Return the values of the requested bits of output `name`, shape (bits, instances).

        Parameters
        ----------
        v : ndarray of int, shape (rows, instances)
            Values of all relevant bits in the cycle.
        name : str
            Name of the output.
        """
        return v[self._out[name]]

    def is_independent_of_inputs(self, name: str) -> BoolArray:
        """Return an array with True for each requested bit of an output that depends on no input.

        Such a bit depends on registers only, so that it is known after `begin_cycle`. `name` is the
        name of the output.
        """
        kept: BoolArray = self._kept[self._out[name]]
        return kept

    def next_state(self, v: IntArray, state: ModuleState) -> ModuleState:
        """Return the state after the clock edge at the end of a cycle with the values `v`.

        The memories of `state` are changed in place.
        """
        for number, words in zip(self.rams, state.rams, strict=True):
            self._memories[number].execute_writes(v, words)
        return ModuleState(v[self._d], state.rams)
