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
from .gates import Bit, Gate, GateModule, cone
from .memories import Memory, memory_of
from .sums import Sums
from .symbols import UNKNOWN, both, either, multiplexed, negated, parity

__all__ = ["GateProgram", "State"]

#: Numbers of the bits that are constant.
CONSTANTS: dict[Bit, int] = {"0": 0, "1": 1, "x": 2, "z": 2}


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


class GateProgram:
    """The gates of a module on which some of its outputs depend.

    Parameters
    ----------
    outputs : dict of str to (list of int)
        Of each output, the bits that are wanted.
    kept_as : type
        Of numpy; one of few bits is enough where there are no words.
    sums : Sums, optional
        What operators make, if there are any.

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
        sums: Sums | None = None,
    ) -> None:
        self._type, self._sums = kept_as, sums
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
        self._direct = self._kept_outputs()

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
        self._memories: dict[int, Memory] = {}
        by_level: dict[int, dict[str, list[Gate]]] = defaultdict(lambda: defaultdict(list))
        for item, depth in level.items():
            if isinstance(item, Gate):
                by_level[depth][item.kind].append(item)
            else:
                by_level[depth][f"ram {item}"] = []
            for bit in gives[item]:
                self._add(bit)
        for number in self.rams:
            self._memories[number] = memory_of(module.rams[number], live.rams[number], self._of)
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

    def unknown(self, instances: int) -> State:
        """A state of which nothing is known."""
        flops = np.full((len(self._q), instances), UNKNOWN, self._type)
        return State(flops, [self._memories[n].unknown(instances) for n in self.rams])

    def values(self, state: State, inputs: Mapping[str, IntArray]) -> IntArray:
        """All bits in a cycle.

        Parameters
        ----------
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
                self._memories[step].read(v, state.rams[self.rams.index(step)])
            else:
                v[step.y] = self._carried_out(step, v)
        return v

    def _carried_out(self, step: _Batch, v: IntArray) -> IntArray:
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
            case "SUM":
                assert self._sums is not None
                return self._sums.combined_bits(a, v[step.b])
            case "SAME":
                return np.where((v[step.b] == v[step.s]) & (v[step.b] >> 1 == 0), a, UNKNOWN)
        return multiplexed(v[step.s], a, v[step.b])

    def outputs_of(self, v: IntArray, name: str) -> IntArray:
        """The bits of an output that matter."""
        return v[self._out[name]]

    def is_kept(self, name: str) -> BoolArray:
        """Which bits of an output are registers or constants."""
        return self._direct[name][0]

    def direct(self, state: State) -> dict[str, tuple[BoolArray, IntArray]]:
        """Of each output, which of the bits are registers or constants, and what they are."""
        found = {}
        for name, (here, constants, places) in self._direct.items():
            held = state.flops[places] if len(state.flops) else 0
            found[name] = here, np.where(constants <= 1, constants, held)
        return found

    def _kept_outputs(self) -> dict[str, tuple[BoolArray, IntArray, IntArray]]:
        """Of each output: which bits are registers or constants; these, and their registers."""
        place = np.full(self.bits, -1)
        place[self._q] = np.arange(len(self._q))
        found = {}
        for name, numbers in self._out.items():
            here: BoolArray = (place[numbers] >= 0) | (numbers <= 1)
            found[name] = here, numbers[here][:, None], place[numbers[here]]
        return found

    def after(self, v: IntArray, state: State) -> State:
        """The state after the next edge; memories are changed in place."""
        for number, words in zip(self.rams, state.rams, strict=True):
            self._memories[number].write(v, words)
        return State(v[self._d], state.rams)
