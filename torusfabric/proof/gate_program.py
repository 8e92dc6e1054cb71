"""Carries out the gates of a module on many instances at once, with bits as in `symbols`.

Only what some outputs depend on is carried out. Gates of a kind and level are one numpy operation
over all instances.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..topology import BoolArray, IntArray
from .gates import Bit, Gate, GateModule, Ram
from .symbols import UNKNOWN, both, either, multiplexed, negated, parity

__all__ = ["Cone", "GateProgram", "State", "cone"]

#: Numbers of the bits that are constant.
CONSTANTS: dict[Bit, int] = {"0": 0, "1": 1, "x": 2, "z": 2}


class Cone(NamedTuple):
    """What some bits depend on.

    Parameters
    ----------
    bits : set of int
    rams : dict of int to (set of int)
        Of each memory, the positions in its word.
    """

    bits: set[int]
    rams: dict[int, set[int]]


def cone(module: GateModule, wanted: Collection[Bit], *, through_flops: bool = True) -> Cone:
    """What bits of a module depend on, at once or over time.

    Parameters
    ----------
    module : GateModule
    wanted : collection of Bit
    through_flops : bool
        Whether also over time; else registers and memories are where it ends.
    """
    gate_of = {gate.y: gate for gate in module.gates}
    flop_of = {flop.q: flop.d for flop in module.flops} if through_flops else {}
    read_of = {
        bit: (number, address, k)
        for number, ram in enumerate(module.rams)
        for address, data in ram.reads
        for k, bit in enumerate(data)
    }
    found, left = Cone(set(), defaultdict(set)), list(wanted)
    while left:
        bit = left.pop()
        if isinstance(bit, str) or bit in found.bits:
            continue
        found.bits.add(bit)
        if bit in gate_of:
            left += gate_of[bit][2:]
        elif bit in flop_of:
            left.append(flop_of[bit])
        elif bit in read_of:
            number, address, k = read_of[bit]
            left += address
            found.rams[number].add(k)
            for at, data, enable in module.rams[number].writes:
                left += [*at, enable[k]]
                left += [data[k]] if through_flops else []
    return found


class State(NamedTuple):
    """The state of all instances of a module.

    Parameters
    ----------
    flops : ndarray of int, shape (registers, instances)
    rams : list of (ndarray of int, shape (words, bits, instances))
    """

    flops: IntArray
    rams: list[IntArray]


class _Batch(NamedTuple):
    """Gates of a kind that do not depend on each other."""

    kind: str
    y: IntArray
    a: IntArray
    b: IntArray
    s: IntArray


class _Ports(NamedTuple):
    """The live part of a memory: numbers of bits."""

    size: int
    reads: list[tuple[IntArray, IntArray]]
    writes: list[tuple[IntArray, IntArray, IntArray]]
    contents: IntArray | None
    collides: bool


class GateProgram:
    """The gates of a module on which some of its outputs depend.

    Parameters
    ----------
    module : GateModule
    outputs : dict of str to (list of int)
        Of each output, the bits that are wanted.
    kept_as : type
        Of numpy; one of few bits is enough where there are no words.

    Attributes
    ----------
    inputs, outputs : dict of str to (list of int)
        Of each port, the bits that matter.
    """

    def __init__(
        self,
        module: GateModule,
        outputs: Mapping[str, list[int]],
        *,
        kept_as: type[np.signedinteger[Any]] = np.int32,
    ) -> None:
        self._type = kept_as
        self.module, self.outputs = module, dict(outputs)
        wanted = [module.outputs[name][k] for name, bits in outputs.items() for k in bits]
        live = cone(module, wanted)
        self._live = live
        self._number = dict(CONSTANTS)
        self.inputs = {
            name: [k for k, bit in enumerate(bits) if bit in live.bits]
            for name, bits in module.inputs.items()
        }
        for name, bits in self.inputs.items():
            for k in bits:
                self._add(module.inputs[name][k])
        flops = [flop for flop in module.flops if flop.q in live.bits]
        for flop in flops:
            self._add(flop.q)
        self.names = [module.names.get(flop.q, "") for flop in flops]
        self._steps = list(self._ordered())
        self.bits = max(self._number.values()) + 1
        self._q, self._d = (self._of([flop[k] for flop in flops]) for k in (0, 1))
        self._in = {n: self._of([module.inputs[n][k] for k in b]) for n, b in self.inputs.items()}
        self._out = {n: self._of([module.outputs[n][k] for k in b]) for n, b in outputs.items()}

    def _add(self, bit: Bit) -> None:
        """Give a bit the next number."""
        if bit not in self._number:
            self._number[bit] = 3 + len(self._number) - len(CONSTANTS)

    def _of(self, bits: Collection[Bit]) -> IntArray:
        """The numbers of bits."""
        return np.array([self._number.get(bit, 2) for bit in bits], np.intp)

    def _ordered(self) -> Iterator[_Batch | int]:
        """Batches of gates, and the numbers of memories, in an order in which they can be done."""
        module, live = self.module, self._live
        needs: dict[object, list[Bit]] = {}
        gives: dict[object, list[int]] = {}
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
        level = self._levels(needs, gives)
        self._ports: dict[int, _Ports] = {}
        by_level: dict[int, dict[str, list[Gate]]] = defaultdict(lambda: defaultdict(list))
        for item, depth in level.items():
            if isinstance(item, Gate):
                by_level[depth][item.kind].append(item)
            else:
                by_level[depth][f"ram {item}"] = []
            for bit in gives[item]:
                self._add(bit)
        for number in self.rams:
            self._ports[number] = self._ports_of(module.rams[number], live.rams[number])
        for depth in sorted(by_level):
            for kind, gates in by_level[depth].items():
                if kind.startswith("ram "):
                    yield int(kind[4:])
                else:
                    columns = zip(*(gate[1:] for gate in gates), strict=True)
                    yield _Batch(kind, *(self._of(column) for column in columns))

    def _levels(
        self, needs: dict[object, list[Bit]], gives: dict[object, list[int]]
    ) -> dict[object, int]:
        """How deep below registers and inputs everything is."""
        maker = {bit: item for item, bits in gives.items() for bit in bits}
        level: dict[object, int] = {}
        for start in needs:
            stack = [start]
            while stack:
                item = stack[-1]
                if item in level:
                    stack.pop()
                    continue
                before = [maker[bit] for bit in needs[item] if bit in maker]
                open_ = [other for other in before if other not in level]
                if open_:
                    if len(stack) > len(needs):
                        raise ValueError(f"Module {self.module.name} must be free of loops")
                    stack += open_
                else:
                    level[item] = 1 + max((level[other] for other in before), default=0)
                    stack.pop()
        return level

    def _ports_of(self, ram: Ram, bits: set[int]) -> _Ports:
        """The live part of a memory."""
        chosen = sorted(bits)
        pick = lambda row: self._of([row[k] for k in chosen])
        contents = None
        if not ram.writes:
            text = ram.initial[::-1].ljust(ram.size * ram.width, "x")
            table = [[text[w * ram.width + k] for k in chosen] for w in range(ram.size)]
            contents = np.array([[_constant(char) for char in row] for row in table], np.int32)
        return _Ports(
            ram.size,
            [(self._of(address), pick(data)) for address, data in ram.reads],
            [(self._of(at), pick(data), pick(enable)) for at, data, enable in ram.writes],
            contents,
            ram.collides,
        )

    def comb_inputs(self) -> dict[tuple[str, int], set[tuple[str, int]]]:
        """The input bits that each output bit depends on within a cycle."""
        inputs = self.module.inputs
        of_bit = {inputs[name][k]: (name, k) for name, bits in self.inputs.items() for k in bits}
        found = {}
        for name, bits in self.outputs.items():
            for k in bits:
                reached = cone(self.module, [self.module.outputs[name][k]], through_flops=False)
                found[name, k] = {of_bit[bit] for bit in reached.bits if bit in of_bit}
        return found

    def unknown(self, instances: int) -> State:
        """A state of which nothing is known."""
        flops = np.full((len(self._q), instances), UNKNOWN, self._type)
        return State(flops, [self._ram(self._ports[n], instances) for n in self.rams])

    def _ram(self, ports: _Ports, instances: int) -> IntArray:
        if ports.contents is not None:
            return np.broadcast_to(ports.contents[:, :, None], (*ports.contents.shape, 1))
        width = len(ports.reads[0][1])
        return np.full((ports.size, width, instances), UNKNOWN, np.int32)

    def values(self, state: State, inputs: Mapping[str, IntArray]) -> IntArray:
        """All bits in a cycle.

        Parameters
        ----------
        state : State
        inputs : dict of str to ndarray of int, shape (bits that matter, instances)
            What is left out is not known.
        """
        v = np.empty((self.bits, state.flops.shape[1]), self._type)
        v[0], v[1], v[2] = 0, 1, UNKNOWN
        for name, numbers in self._in.items():
            if len(numbers):
                v[numbers] = inputs.get(name, UNKNOWN)
        v[self._q] = state.flops
        for step in self._steps:
            if isinstance(step, int):
                self._read(step, v, state.rams[self.rams.index(step)])
            else:
                v[step.y] = _carried_out(step, v)
        return v

    def outputs_of(self, v: IntArray, name: str) -> IntArray:
        """The bits of an output that matter."""
        return v[self._out[name]]

    def direct(self, state: State) -> dict[str, tuple[BoolArray, IntArray]]:
        """Of each output, which of the bits are registers or constants, and what they are."""
        place = np.full(self.bits, -1)
        place[self._q] = np.arange(len(self._q))
        found = {}
        for name, numbers in self._out.items():
            here = (place[numbers] >= 0) | (numbers <= 1)
            values = np.where(
                (numbers[here] <= 1)[:, None],
                numbers[here][:, None],
                state.flops[place[numbers[here]]] if len(state.flops) else 0,
            )
            found[name] = here, values
        return found

    def after(self, v: IntArray, state: State) -> State:
        """The state after the next edge; memories are changed in place."""
        for number, words in zip(self.rams, state.rams, strict=True):
            for address, data, enable in self._ports[number].writes:
                _write(words, v[address], v[data], v[enable])
        return State(v[self._d], state.rams)

    def _read(self, number: int, v: IntArray, words: IntArray) -> None:
        """Give what is read from a memory."""
        ports = self._ports[number]
        for address, data in ports.reads:
            at = _address(v[address])
            known = (at >= 0) & (at < ports.size)
            lanes = np.arange(v.shape[1]) if words.shape[2] > 1 else np.zeros(v.shape[1], int)
            read = words[np.where(known, at, 0), :, lanes].T
            for into, _, enable in ports.writes if ports.collides else ():
                there = _address(v[into])
                known = known & ~((v[enable] != 0).any(axis=0) & ((there == at) | (there < 0)))
            v[data] = np.where(known, read, UNKNOWN)


def _carried_out(step: _Batch, v: IntArray) -> IntArray:
    """What a batch of gates makes of the bits so far."""
    a = v[step.a]
    match step.kind:
        case "NOT":
            return negated(a)
        case "AND":
            return both(a, v[step.b])
        case "OR":
            return either(a, v[step.b])
        case "XOR":
            return parity(a, v[step.b])
    return multiplexed(v[step.s], a, v[step.b])


def _address(bits: IntArray) -> IntArray:
    """Addresses as numbers; -1 where not all bits are known."""
    weights = 1 << np.arange(len(bits))
    return np.where(((bits == 0) | (bits == 1)).all(axis=0), weights @ bits, -1)


def _write(words: IntArray, address: IntArray, data: IntArray, enable: IntArray) -> None:
    """Write into memories, in place."""
    at = _address(address)
    active = (enable != 0).any(axis=0)
    for lane in np.nonzero(active & (at < 0))[0]:
        # It may be written anywhere.
        words[:, enable[:, lane] != 0, lane] = UNKNOWN
    lanes = np.nonzero(active & (at >= 0) & (at < len(words)))[0]
    if len(lanes):
        old, e, new = words[at[lanes], :, lanes].T, enable[:, lanes], data[:, lanes]
        words[at[lanes], :, lanes] = multiplexed(e, old, new).T


def _constant(char: str) -> int:
    return {"0": 0, "1": 1}.get(char, UNKNOWN)
