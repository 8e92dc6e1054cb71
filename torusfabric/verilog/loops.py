"""Generate loops of the structural top, and the net arrays between them.

The user is `TopText`. A *scope* is a set of places in the netlist that have instances, such as all
nodes, and each of these places is a *member* of the scope. `Nets` holds all nets and constants of
the top. `GenerateLoop` writes one generate loop over the members of a scope, or an instance outside
loops.

A *source* describes the nets or constants that drive some bits of an input, in all instances of an
array. It often depends on a number of the member: the node that an in-port is linked to, or the
part of a wide net. The loop variable is ``k``. Such a number is written, in this order of
preference, as a literal, as a function of ``k`` (``k``, ``k / 4``, ``3 * k + 1``), or as entry k of
a *table*, which is one wide constant with an entry for each member.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..rtl.arrays import Array, Constant, Constants, Part, Role, RomContents, Slice, Source
from ..rtl.memories import address_width
from ..topology import BoolArray, IntArray
from .module_text import ModuleText
from .syntax import (
    bits_of,
    comma_list,
    concatenate_names,
    constant_lines,
    declare_wires,
    range_of,
    select_bits,
)

__all__ = ["GenerateLoop", "Nets", "local_name"]

#: Characters from which on an expression that two inputs share becomes a wire.
LONG_EXPRESSION = 30

#: Bits of the widest ROM row that `RotatedRoms` compares, as a number of 64 bits.
WIDEST_ROTATED = 62


def local_name(pattern: str) -> str:
    """Return the name that a net or an instance of the netlist has inside a generate loop.

    There it needs no number, because each iteration of the loop has a scope of its own.

    Parameters
    ----------
    pattern : str
        The name with ``{}`` in place of the number.

    Examples
    --------
    >>> [local_name(name) for name in ("tx_{}", "router_at_{}", "side_{}_data")]
    ['tx', 'router', 'side_data']
    """
    return pattern.replace("_at_{}", "").replace("_{}", "")


@dataclass
class NetArray:
    """A Verilog array of nets, such as ``tx [0:15]``: one net for each node, for example.

    Parameters
    ----------
    width : int
        Bits of the widest of these nets.
    size : int
        Number of elements.
    """

    name: str
    width: int
    size: int


class MemberTable(NamedTuple):
    """A constant of the Verilog top with a number for each iteration of a generate loop.

    The numbers stand side by side, the first one lowest.

    Parameters
    ----------
    bits : int
        Width of each number.
    values : ndarray of int, shape (members,)
        The number for each iteration; 0 where none is defined yet.
    defined : ndarray of bool, shape (members,)
        True for numbers that some instance uses.
    """

    name: str
    bits: int
    values: IntArray
    defined: BoolArray


class Nets:
    """The nets and constants of the Verilog top, found by the names of nets in the netlist.

    The top has a generate loop for each *scope*, such as all nodes.

    Parameters
    ----------
    single : dict of str to int
        Net that exists once, ports included -> width in bits.
    scopes : dict of str to (list of Array)
        Scope, such as ``node`` -> arrays of instances in its generate loop.
    taken : set of str
        Further names that are in use, so that no net may have them.

    Attributes
    ----------
    widest : int
        Bits of the longest constant.
    """

    def __init__(
        self, single: Mapping[str, int], scopes: Mapping[str, list[Array]], taken: set[str]
    ) -> None:
        self._single, self._names = single, {*single, *taken, "k", "one", "clk", "rst"}
        self._arrays: dict[str, NetArray] = {}
        self._constants: list[str] = []
        self._assigned: list[str] = []
        self.widest = 0
        for arrays in scopes.values():
            size = 1 + max(int(array.index.max()) for array in arrays)
            for array in arrays:
                for net, width in array.outputs.values():
                    known = self._add_array(net, width, size)
                    known.width = max(known.width, width)

    def _add_array(self, pattern: str, width: int, size: int) -> NetArray:
        """Return the Verilog array for nets such as ``tx_{}``; declare it if it is new.

        A new array has `size` nets of `width` bits.
        """
        if pattern not in self._arrays:
            self._arrays[pattern] = NetArray(self.new_name(local_name(pattern)), width, size)
        return self._arrays[pattern]

    @property
    def net_patterns(self) -> dict[str, str]:
        """The names in the netlist of the nets in Verilog arrays, such as ``{"tx[]": "tx_{}"}``.

        A key is an element of an array. ``[]`` and ``{}`` stand for its number.
        """
        return {f"{array.name}[]": pattern for pattern, array in self._arrays.items()}

    def declaration_lines(self) -> Iterator[str]:
        """Yield the declarations of arrays and constants, and assignments from inputs to arrays."""
        widths = {f"{each.name} [0:{each.size - 1}]": each.width for each in self._arrays.values()}
        yield from declare_wires("  ", widths)
        yield from self._constants
        if self._assigned:
            yield comma_list("  assign ", self._assigned, ";")

    def new_name(self, first: str, name: str = "") -> str:
        """Return the first unused name among `first`, `name`, ``name_2``, .., and mark it as used.

        By default `name` is the same as `first`.
        """
        found, number, name = first, 1, name or first
        if found in self._names:
            found = name
        while found in self._names:
            number += 1
            found = f"{name}_{number}"
        self._names.add(found)
        return found

    def declare_constant(self, name: str, value: int, bits: int) -> None:
        """Add to the top a ``localparam`` of `bits` bits, with this name and `value`."""
        self.widest = max(self.widest, bits)
        self._constants.append(
            f"  localparam {range_of(bits)}{name} = {constant_lines(value, bits)};"
        )

    def part_expression(self, part: Part) -> str:
        """Return the Verilog expression of a bit range of a net, such as ``tx[17][7:0]``."""
        name, of = self.net_expression(part.net)
        return bits_of(name, part.start, part.width, of)

    def net_expression(self, net: str) -> tuple[str, int]:
        """Return the Verilog expression of a net of the netlist, and its width in bits.

        For example, net ``tx_17`` is ``tx[17]`` if nets of the form ``tx_{}`` are an array in
        Verilog.
        """
        if net in self._single:
            return net, self._single[net]
        for found in re.finditer(r"(?<=_)\d+(?=_|$)", net):
            pattern = f"{net[: found.start()]}{{}}{net[found.end() :]}"
            if pattern in self._arrays:
                return self.element_expression(pattern, found[0])
        raise KeyError(net)

    def element_expression(self, pattern: str, number: str) -> tuple[str, int]:
        """Return the Verilog expression of a net with a number in its name, and its width in bits.

        Parameters
        ----------
        pattern : str
            Name of the net in the netlist, with ``{}`` for the number: ``tx_{}``.
        number : str
            Expression of the number: ``k`` for the element ``tx[k]``.
        """
        net = pattern.format(number)
        if pattern not in self._arrays and net in self._single:
            return net, self._single[net]
        array = self.find_array(pattern)
        return f"{array.name}[{number}]", array.width

    def find_array(self, pattern: str) -> NetArray:
        """Return the Verilog array for nets such as ``tx_{}``.

        If the nets are inputs of the top, declare an array and assign the inputs to it.
        """
        if pattern not in self._arrays:
            form = re.compile(re.escape(pattern).replace(r"\{\}", r"(\d+)"))
            inputs = {int(m[1]): net for net in self._single if (m := form.fullmatch(net))}
            width = self._single[next(iter(inputs.values()))]
            name = self._add_array(pattern, width, max(inputs) + 1).name
            self._assigned += [f"{name}[{k}] = {net}" for k, net in inputs.items()]
        return self._arrays[pattern]


class GenerateLoop:
    """The Verilog of one generate loop, or of one instance outside loops.

    A loop goes over the members of a *scope*, such as all nodes.

    Parameters
    ----------
    scope : str
        Name of the scope; empty for an instance outside loops.
    arrays : sequence of Array
        Arrays of instances in the scope.
    prefix : str
        Prefix of the names of all modules.
    modules : dict of str to ModuleText
        Leaf modules, of which instances connect the ports.

    Attributes
    ----------
    lines : list of str
        The Verilog, line by line.
    paths : dict of (str, str) to str
        (Name of instances, module) -> path of the instances in the Verilog, both with ``{}`` for
        the number: ``("router_at_{}", "router_0")`` -> ``node[{}].router``.
    """

    def __init__(
        self,
        nets: Nets,
        scope: str,
        arrays: Sequence[Array],
        prefix: str,
        modules: Mapping[str, ModuleText],
    ) -> None:
        self._nets, self._prefix, self._modules = nets, prefix, modules
        self._size = 1 + max(int(array.index.max()) for array in arrays) if scope else 1
        self._tables: list[MemberTable] = []
        self._inside: list[str] = []
        self._indent = "      " if scope else "  "
        self.paths: dict[tuple[str, str], str] = {}
        named: dict[str, list[Array]] = {}
        for array in arrays:
            named.setdefault(local_name(array.name), []).append(array)
        # Routers come first, so that a table which other modules share is named after their input.
        order = sorted(named.values(), key=lambda each: each[0].role is not Role.ROUTER)
        found = {
            array: pins for each in order for array, pins in self._input_expressions(each).items()
        }
        self._share_long_expressions(arrays, [found[array] for array in arrays])
        if not scope:
            (array,) = arrays
            name = array.name.format(array.index[0])
            self.paths[array.name, array.module] = name
            instance = self._instance_lines(array, found[array], "  ", name)
            self.lines = [*self._inside, *instance]
            return
        instances = [
            line
            for name, each in named.items()
            for line in self._instances_by_module(
                scope, name, [(array, found[array]) for array in each]
            )
        ]
        head = f"    for (k = 0; k < {self._size}; k = k + 1) begin : {scope}"
        self.lines = [head, *self._inside, *instances, "    end"]
        for name, bits, values, _ in self._tables:
            every = (values[:, None] >> np.arange(bits) & 1).astype(np.uint8)
            packed = np.packbits(every.ravel(), bitorder="little").tobytes()
            value = int.from_bytes(packed, "little")
            nets.declare_constant(name, value, bits * self._size)

    # Instances

    def _input_expressions(self, arrays: Sequence[Array]) -> dict[Array, dict[str, str]]:
        """Return the Verilog expression of each input: ``found[array][port]``.

        `arrays` are the arrays of instances with one name. If they have different modules, a
        generate ``if`` selects one for each iteration of the loop. Inputs that differ only in
        numbers get one expression, with a table of these numbers that all arrays share.
        """
        pins: dict[Array, dict[str, str]] = {}
        alike: dict[tuple[str, tuple[object, ...]], list[tuple[Array, list[Source]]]] = {}
        for array in arrays:
            known = self._modules[self._prefix + array.module].structure.ports
            pins[array] = {name: name for name in ("clk", "rst") if name in known}
            for port, sources in array.inputs.items():
                if port in known:
                    pins[array][port] = ""
                    joined = _merge_adjacent(sources)
                    form = port, tuple(map(_source_key, joined))
                    alike.setdefault(form, []).append((array, joined))
        for (port, forms), each in alike.items():
            index = np.concatenate([array.index for array, _ in each])
            whole = replace(each[0][0], index=index)
            texts = []
            for k in range(len(forms)):
                label = f"{port}_{k}" if len(forms) > 1 else port
                source = _merge_sources([sources[k] for _, sources in each])
                texts.append(self._source_expression(source, whole, label))
            for array, _ in each:
                pins[array][port] = concatenate_names(texts[::-1])
        return pins

    def _share_long_expressions(
        self, arrays: Sequence[Array], inputs: list[dict[str, str]]
    ) -> None:
        """Declare a wire for each long expression that several inputs share, and use it there.

        `inputs` has a dict for each of `arrays`: input port -> expression. The dicts are changed.
        """
        uses = Counter(text for pins in inputs for text in pins.values())
        named: dict[str, str] = {}
        for array, pins in zip(arrays, inputs, strict=True):
            for port, text in pins.items():
                if text not in named and uses[text] > 1 and len(text) > LONG_EXPRESSION:
                    named[text] = name = self._nets.new_name(port, f"{port}_in")
                    width = sum(source.width for source in array.inputs[port])
                    self._inside.append(f"{self._indent}wire {range_of(width)}{name} = {text};")
                pins[port] = named.get(text, text)

    def _instances_by_module(
        self, scope: str, name: str, each: list[tuple[Array, dict[str, str]]]
    ) -> Iterator[str]:
        """Yield the lines of the instances with one name, such as ``router``, in a generate loop.

        If the module differs between the iterations of the loop, or some iterations have no such
        instance, a generate ``if`` or ``case`` on the loop variable selects it.

        Parameters
        ----------
        scope, name : str
            Name of the loop, and name of the instances.
        each : list of (Array, dict of str to str)
            For each module, its instances, and for each input the expression.
        """
        which = np.full(self._size, len(each))
        for number, (array, _) in enumerate(each):
            which[array.index] = number
            self.paths[array.name, array.module] = f"{scope}[{{}}].{name}"
        count = int(which.max()) + 1
        if count == 1:
            yield from self._instance_lines(*each[0], "      ", name)
            return
        for array, _ in each:
            self.paths[array.name, array.module] += ".one"
        if count == 2:
            label = f"has_{each[0][0].module}"
            heads = [
                f"if ({self._table_entry(label, np.arange(self._size), which == 0, 1)})",
                "else",
            ]
        else:
            bits = address_width(count)
            test = self._table_entry(f"{name}_module", np.arange(self._size), which, bits)
            heads = [f"  {bits}'d{number}:" for number in range(count - 1)] + ["  default:"]
            yield f"      case ({test})"
        for head, (array, pins) in zip(heads, each, strict=False):
            yield f"      {head} begin : {name}"
            yield from self._instance_lines(array, pins, " " * (8 + 2 * (count > 2)), "one")
            yield " " * (6 + 2 * (count > 2)) + "end"
        if count > 2:
            if len(each) < count:
                yield from (f"        default: begin : no_{name}", "        end")
            yield "      endcase"

    def _instance_lines(
        self, array: Array, pins: Mapping[str, str], indent: str, name: str
    ) -> list[str]:
        """Return the Verilog of an instance in the loop, as lines.

        `pins` has the expression at each input, and the outputs of `array` drive its nets. `name`
        is the name of the instance, and `indent` the spaces before each line.
        """
        every = [f".{port}({text})" for port, text in pins.items()]
        for port, (net, width) in array.outputs.items():
            word, of = self._nets.element_expression(
                net, "k" if self._size > 1 else str(array.index[0])
            )
            every.append(f".{port}({bits_of(word, 0, width, of)})")
        head = f"{indent}{self._prefix}{array.module} "
        if array.roms is None:
            return [comma_list(f"{head}{name} (", every, ");")]
        head += f"#({self._rom_parameters(array, array.roms)})"
        return [head, comma_list(f"{indent}  {name} (", every, ");")]

    def _rom_parameters(self, array: Array, roms: RomContents) -> str:
        """Return the text of the parameters of ROM instances: ``.DEPTH(4), .WIDTH(8), ..``.

        The different contents in `roms` stand one after another in one constant, from which each
        instance of `array` selects its own. If the contents repeat, rotated, from node to node,
        only those of the first nodes are stored; see `RotatedRoms`.
        """
        stem, different = local_name(array.name), [*roms.contents]
        depth, width = len(different[0]), roms.width
        bits, turns = depth * width, None
        if len(array) == self._size < 2 * len(different) and width <= WIDEST_ROTATED:
            from .rotated_roms import RotatedRoms

            rows = np.array(different)[roms.which[np.argsort(array.index)]]
            turns = RotatedRoms.from_rows(rows)
            different = (
                [tuple(each) for each in rows[: turns.step].tolist()] if turns else different
            )
        value = 0
        for row in (row for rows in reversed(different) for row in reversed(rows)):
            value = value << width | row
        if self._size == 1:
            expression = constant_lines(value, bits)
        else:
            expression = self._nets.new_name(f"{stem}_rows".upper())
            self._nets.declare_constant(expression, value, bits * len(different))
        if turns:
            here = self._nets.new_name(f"{stem}_here".upper())
            self._inside += turns.declare_rows(here, expression, width, depth)
            expression = here
        elif len(different) > 1:
            number = self._number_expression(array, roms.which, len(different), f"{stem}_number")
            expression += f"[{self._word_offset(bits, number)}{_part_select_end(bits)}]"
        return (f".DEPTH({depth}), .WIDTH({width}), .ADDRESS({address_width(depth)}), "
                f".CONTENTS({expression})")  # fmt: skip

    # Expressions

    def _source_expression(self, source: Source, array: Array, label: str) -> str:
        """Return the Verilog expression of the nets or constants that drive some bits of an input.

        Parameters
        ----------
        source : Source
            The nets or constants, which can differ from instance to instance.
        array : Array
            Instances that have the input.
        label : str
            Name for a table of the differences, if the expression needs one.
        """
        if isinstance(source, Constant):
            return f"{source.width}'d{source.value}"
        if isinstance(source, Constants):
            if len(array) == self._size and (source.values == source.values[0]).all():
                return f"{source.width}'d{source.values[0]}"
            return self._table_entry(label, array.index, source.values, source.width)
        if isinstance(source, Slice):
            return self._slice_expression(source, array, label)
        used = [*source.used_slices()]
        texts = [
            self._slice_expression(
                each, replace(array, index=array.index[rows]), f"{label}_net_{number}"
            )
            for number, (rows, each) in enumerate(used)
        ]
        which = np.zeros(len(array), int)
        for number, (rows, _) in enumerate(used):
            which[rows] = number
        bits = address_width(len(used))
        text = texts[-1]
        for number, each in enumerate(texts[:-1]):
            if len(used) == 2:
                test = self._table_entry(f"{label}_is", array.index, which == 0, 1)
            else:
                test = (
                    f"{self._table_entry(f'{label}_is', array.index, which, bits)} == "
                    f"{bits}'d{number}"
                )
            text = f"{test} ? {each} : {text}"
        return text

    def _slice_expression(self, source: Slice, array: Array, label: str) -> str:
        """Return the Verilog expression of `source`, a bit range of a net in each instance.

        The number in the name of the net, and the position of the bits in it, may depend on the
        instance. `label` is the name for a table of these numbers, if one is needed.
        """
        if source.number is None:
            name, of = self._nets.net_expression(source.net)
        elif len(array) == self._size and (source.number == source.number[0]).all():
            name, of = self._nets.element_expression(source.net, str(source.number[0]))
        else:
            size = self._nets.find_array(source.net).size
            name, of = self._nets.element_expression(
                source.net, self._number_expression(array, source.number, size, f"{label}_of")
            )
        if isinstance(source.start, int):
            return bits_of(name, source.start, source.width, of)
        if source.width == of:  # a single bit has no number
            return name
        assert not (source.start % source.width).any(), "words lie side by side"
        words = source.start // source.width
        word = self._number_expression(array, words, of // source.width, f"{label}_word")
        return f"{name}[{self._word_offset(source.width, word)}{_part_select_end(source.width)}]"

    def _word_offset(self, width: int, number: str) -> str:
        """Return the expression of the lowest bit of one of several adjacent words: ``8 * k``.

        Parameters
        ----------
        width : int
            Bits of each word.
        number : str
            Expression of the number of the word.
        """
        if width == 1 or number == "0":
            return number
        return (
            f"{width} * ({number})"
            if re.search(r"[+/] ", number.split("[")[0])
            else f"{width} * {number}"
        )

    def _number_expression(self, array: Array, values: IntArray, count: int, label: str) -> str:
        """Return the Verilog expression of a number that differs from instance to instance.

        The expression is a literal, a function of the loop variable such as ``3 * k + 1``, or an
        entry of a table.

        Parameters
        ----------
        array : Array
            The instances.
        values : ndarray of int, shape (instances,)
            The number of each instance.
        count : int
            A number that is larger than all values; it decides the bits of an entry of a table.
        label : str
            Name for the table, if the expression needs one.
        """
        index, members, bits = array.index, np.arange(self._size), address_width(count)
        if len(index) == self._size and (values == values[0]).all():
            return str(values[0])
        for shift in range(16):
            if (values == index >> shift).all() and members[-1] >> shift < count:
                return f"k / {1 << shift}" if shift else "k"
        if len(index) > 1:
            step = int(values[1] - values[0]) // int(index[1] - index[0])
            first = int(values[0]) - step * int(index[0])
            found = first + step * members
            if step > 0 and first >= 0 and found[-1] < count and (values == found[index]).all():
                times = f"{step} * k" if step > 1 else "k"
                return f"{times} + {first}" if first else times
        return self._table_entry(label, index, values, bits)

    def _table_entry(
        self, label: str, index: IntArray, values: IntArray | BoolArray, bits: int
    ) -> str:
        """Return the Verilog expression of entry ``k`` of a table; ``k`` is the loop variable.

        The table is a constant with an entry for each iteration of the loop. A known table is used
        again if its entries agree with the new values.

        Parameters
        ----------
        label : str
            Name for the table.
        index : ndarray of int
            Iterations of the loop that have a value.
        values : ndarray of int or bool
            Value in each of these iterations.
        bits : int
            Bits of an entry.
        """
        if (values == index).all():
            return select_bits("k", 0, bits)
        for table in self._tables:
            agrees = table.values[index] == values
            if table.name == label.upper():
                agrees |= ~table.defined[index]
            if table.bits == bits and agrees.all():
                break
        else:
            whole, there = np.zeros(self._size, np.int64), np.zeros(self._size, bool)
            table = MemberTable(self._nets.new_name(label.upper()), bits, whole, there)
            self._tables.append(table)
        table.values[index], table.defined[index] = values, True
        return f"{table.name}[{self._word_offset(bits, 'k')}{_part_select_end(bits)}]"


def _source_key(source: Source) -> object:
    """Return a key for a source: the nets or constants that drive some bits of an input.

    Sources with equal keys can be written as one Verilog expression. They differ only in a number
    for each instance, such as the number in the name of a net, which then stands in a table.
    """
    match source:
        case Slice(net, number, start, width):
            return net, number is None, start if isinstance(start, int) else None, width
        case Constants(_, width):
            return width
        case Constant():
            return source
    return id(source)


def _merge_sources(sources: Sequence[Source]) -> Source:
    """Return one source, for all instances of a loop, from sources for some instances each.

    A source is the nets or constants that drive some bits of an input. All `sources` have the same
    `_source_key`, so that one Verilog expression can describe them. The result has the instances of
    all of them, in order.
    """
    first = sources[0]
    if len(sources) == 1 or isinstance(first, Constant):
        return first
    whole = lambda name: np.concatenate([getattr(each, name) for each in sources])
    if isinstance(first, Constants):
        return Constants(whole("values"), first.width)
    assert isinstance(first, Slice), "other sources have forms of their own"
    number = None if first.number is None else whole("number")
    start = first.start if isinstance(first.start, int) else whole("start")
    return Slice.from_starts(first.net, number, start, first.width)


def _part_select_end(width: int) -> str:
    """Return the end of a Verilog selection of `width` bits from a variable position: ``+: width``.

    The result is empty for a single bit.
    """
    return f" +: {width}" if width > 1 else ""


def _merge_adjacent(sources: Sequence[Source]) -> list[Source]:
    """Return the drivers of an input, with adjacent bit ranges of one net merged into one range.

    `sources` lists the lowest bits first.
    """
    found: list[Source] = []
    for each in sources:
        last = found[-1] if found else None
        if (
            isinstance(each, Slice)
            and isinstance(last, Slice)
            and each.net == last.net
            and np.array_equal(each.number, last.number)  # type: ignore[arg-type]
            and isinstance(each.start, int)
            and isinstance(last.start, int)
            and each.start == last.start + last.width
        ):
            found[-1] = last._replace(width=last.width + each.width)
        else:
            found.append(each)
    return found
