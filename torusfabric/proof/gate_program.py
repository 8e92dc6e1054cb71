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
    """The memory bits of a module that the requested outputs depend on, with their ports.

    Ports are given by *rows*: indices of bits in the array of symbolic values, see `GateProgram`.

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
        """Return the words before the first cycle, shape (words, bits, instances).

        A ROM has its contents. All bits of a writable memory are unknown.
        """
        if self.contents is not None:
            return self.contents
        width = len(self.reads[0][1])
        return np.full((self.size, width, instances), UNKNOWN, np.int32)

    def execute_reads(self, values: IntArray, words: IntArray) -> None:
        """Compute the data bits of all read ports, and write them into `values`.

        `values` has the symbolic values of all bits of the module: a row for each bit, a column for
        each instance. `words` has the contents of the memory, shape (words, bits, instances). Data
        bits are unknown if the address is unknown, or, with `collides`, if the same word may be
        written in this cycle.
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
        """Change `words` as all write ports do at the clock edge.

        `values` is the array of the symbolic values of all bits in the cycle before the edge;
        `words` has the contents of the memory and is changed in place.
        """
        for address, data, enable in self.writes:
            _execute_write(words, values[address], values[data], values[enable])


def _relevant_memory(
    ram: Ram,
    bits: Collection[int],
    places: Callable[[Collection[Bit]], IntArray],
    roms: Sequence[str],
) -> GateMemory:
    """Return a memory with only those bits of its words that the requested outputs depend on.

    Parameters
    ----------
    ram : Ram
        The whole memory.
    bits : collection of int
        Positions of these bits within a word.
    places : function of (collection of Bit) -> ndarray of int
        Returns the rows (indices in the array of symbolic values) of some bits.
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
    """Change `words` as one write port does at a clock edge, in place.

    If some address bits are unknown, the write can hit several words; all of these become unknown.

    Parameters
    ----------
    words : ndarray of int, shape (words, bits, instances)
        All words of the memory.
    address, data, enable : ndarray of int
        Symbolic values of the address bits, the data bits, and the enable of each data bit, shape
        (bits, instances).
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
    """Return, for each instance, True if two addresses may be equal.

    They cannot be equal if they differ in a bit that is known in each of them. `values` is the
    array of symbolic values, shape (bits, instances). `a` has the indices in this array of the bits
    of one address, and `b` of the other.
    """
    common = min(len(a), len(b))
    apart = (values[a[:common]] ^ values[b[:common]]) == 1
    for rest in (a[common:], b[common:]):
        apart = np.concatenate([apart, values[rest] == 1])
    may_meet: BoolArray = ~apart.any(axis=0)
    return may_meet


def _rom_words(ram: Ram, text: str) -> IntArray:
    """Return the words of the ROM `ram` as bits, shape (words, bits), from the text `text`.

    The text has the last bit of the last word first. The character ``x`` is an unknown bit.
    """
    bits = np.frombuffer(text[::-1].ljust(ram.size * ram.width, "x").encode(), np.uint8)
    found = bits.astype(np.int32) - ord("0")
    found[found > 1] = UNKNOWN
    return found.reshape(ram.size, ram.width)


class ModuleState(NamedTuple):
    """State of all instances of a module: symbolic values of registers and memories.

    It has only the registers and memory bits that the requested outputs depend on.

    Parameters
    ----------
    flops : ndarray of int, shape (registers, instances)
        Value of each register.
    rams : list of (ndarray of int, shape (words, bits, instances))
        Words of each memory.
    """

    flops: IntArray
    rams: list[IntArray]


class _Batch(NamedTuple):
    """Gates of one kind that do not depend on each other, executed by one numpy operation.

    `kind` is the kind of the gates. The array of symbolic values has a row for each bit: `y` lists
    the rows of the outputs of the gates, and `a`, `b` and `s` list the rows of their operands.
    """

    kind: str
    y: IntArray
    a: IntArray
    b: IntArray
    s: IntArray


class GateProgram:
    """Program that executes the gates of a module symbolically, for many instances at once.

    It contains only the gates, registers and memory bits that the requested outputs depend on: the
    *relevant* ones. The symbolic values of one cycle are an array with a *row* for each relevant
    bit and a column for each instance.

    Parameters
    ----------
    outputs : dict of str to (list of int)
        Output -> positions of the requested bits.
    kept_as : type
        Numpy type of symbolic values. A narrow type suffices if all values are 0, 1 or unknown.
    sums : Sums, optional
        Numbers of symbolic sums, for a module with operators.
    contents : sequence of str
        Contents of the ROM of each instance.

    Attributes
    ----------
    inputs, outputs : dict of str to (list of int)
        Port -> positions of its relevant bits.
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
        """Assign the next free row in the array of symbolic values to a bit that has no row yet."""
        if bit not in self._number:
            self._number[bit] = 3 + len(self._number) - len(CONSTANTS)

    def _rows_of(self, bits: Collection[Bit]) -> IntArray:
        """Return the index of each bit in the array of symbolic values.

        A bit on which no requested output depends has no row of its own. It gets the index 2, the
        row of the unknown value.
        """
        return np.array([self._number.get(bit, 2) for bit in bits], np.intp)

    def _execution_order(self) -> Iterator[tuple[_Batch | int, bool]]:
        """Yield the steps that compute all bits of a cycle, in order.

        On the way, each bit that a step computes gets a row in the array of symbolic values.

        Yields
        ------
        step : _Batch or int
            A batch of gates, or the number of a memory whose reads are executed.
        waits : bool
            True if the step depends on an input of the module. All steps that depend on none come
            before those that do.
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
        """Return the sort key of each gate, and of the reads of each memory.

        Parameters
        ----------
        needs : dict of (Gate or int) to (list of Bit)
            Gate, or number of a memory -> bits that it depends on.
        gives : dict of (Gate or int) to (list of int)
            Gate, or number of a memory -> bits that it computes.

        Returns
        -------
        dict of (Gate or int) to (bool, int, str)
            True if it depends on an input of the module; its depth, which is above the depths of
            all gates before it; and its kind, for example ``AND`` or ``ram 3``.
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
            Number of columns of the arrays: instances of the module, times the runs of each.
        """
        flops = np.full((len(self._q), instances), UNKNOWN, self._type)
        return ModuleState(flops, [self._memories[n].unknown_words(instances) for n in self.rams])

    def cycle_bits(self, state: ModuleState, inputs: Mapping[str, IntArray]) -> IntArray:
        """Return the symbolic values of all bits in one cycle, shape (rows, instances).

        There is a row for each bit that the requested outputs depend on. `outputs_of` finds the
        rows of an output, and `next_state` computes the state after the cycle.

        Parameters
        ----------
        state : ModuleState
            Registers and memories in this cycle.
        inputs : dict of str to ndarray of int, shape (bits, instances)
            Input -> values of those bits that `inputs` of the program lists; missing inputs are
            unknown.
        """
        return self.finish_cycle(self.begin_cycle(state), state, inputs)

    def begin_cycle(self, state: ModuleState, instances: int | None = None) -> IntArray:
        """Compute the bits that depend on registers only, and return the array of symbolic values.

        The array has shape (rows, instances), with a row for each bit. The rows that depend on
        inputs are not computed yet; `finish_cycle` does this.

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
        """Compute the bits that depend on inputs, and return the now complete array `v`.

        Parameters
        ----------
        v : ndarray of int, shape (rows, instances)
            Symbolic values of the cycle, from `begin_cycle`; changed in place.
        state : ModuleState
            Registers and memories in this cycle, the same as for `begin_cycle`.
        inputs : dict of str to ndarray
            Input -> values of its relevant bits, shape (bits, instances); missing inputs are
            unknown.
        """
        for name, numbers in self._in.items():
            if len(numbers):
                v[numbers] = inputs.get(name, UNKNOWN)
        self._execute(self._last, v, state)
        return v

    def _execute(self, steps: Iterable[_Batch | int], v: IntArray, state: ModuleState) -> None:
        """Execute `steps` in order, and write the bits that they compute into `v`.

        A step is a batch of gates, or the number of a memory whose reads are executed. `v` is the
        array of symbolic values, and `state` has the contents of the memories.
        """
        for step in steps:
            if isinstance(step, int):
                self._memories[step].execute_reads(v, state.rams[self.rams.index(step)])
            else:
                v[step.y] = self._gate_outputs(step, v)

    def _gate_outputs(self, step: _Batch, v: IntArray) -> IntArray:
        """Return the symbolic values of the outputs of a batch of gates, shape (gates, instances).

        `v` is the array of symbolic values, which has the operands of the gates.
        """
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
            Symbolic values of the cycle, from `cycle_bits` or `finish_cycle`.
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
