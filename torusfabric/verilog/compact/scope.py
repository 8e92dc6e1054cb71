"""A generate loop over what there is many of, and what drives its instances."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from ...rtl.arrays import Array, Fixed, Numbers, OneOf, Role, Slice, Source
from ...rtl.memories import address_width
from ...topology import IntArray
from ..syntax import bits_of, concatenated, filled, range_of
from .nets import Nets
from .tables import entry_of, up

__all__ = ["Scope"]


class Scope:
    """A generate loop over what there is many of.

    Attributes
    ----------
    declared : list of str
        Nets of members that are made of others.
    """

    def __init__(self, nets: Nets, name: str) -> None:
        self._nets, self._tables, self._name = nets, nets.tables, name
        arrays = nets.scopes[name]
        self.size = 1 + max(int(array.index.max()) for array in arrays)
        self.declared: list[str] = []
        self._keys: dict[str, int] = {}
        self._words: list[IntArray] = []
        self._width = 0
        self._joined: dict[str, int] = {}
        routers = [array for array in arrays if array.role is Role.ROUTER]
        if routers:
            self._arrive(routers)

    def _arrive(self, routers: list[Array]) -> None:
        """Declare the words that arrive at each node."""
        rows = np.concatenate([array.index for array in routers])
        order, count = np.argsort(rows), len(routers[0].inputs["rx"])
        whole = Array(0, self._name, rows[order], "rx", "", Role.OTHER, {}, {}, None)
        texts, words = [], []
        for port in range(count):
            each = [array.inputs["rx"][port] for array in routers]
            keys = np.concatenate(
                [self._key(part, len(array)) for part, array in zip(each, routers, strict=True)]
            )[order]
            self._width = each[0].width
            texts.append(self.source(self._slices(keys, self._width), whole, f"rx_{port}"))
            words.append(np.full(self.size, -1))
            words[-1][rows[order]] = keys
        self._words = words
        head = f"      wire {range_of(count * self._width)}rx = {{"
        self.declared += filled(head, texts[::-1], "};")

    def _key(self, source: Source, count: int) -> IntArray:
        """A number for the net, the member and the lowest bit of each instance; -1 for others."""
        found = np.full(count, -1)
        if isinstance(source, OneOf):
            for rows, each in source.each():
                found[rows] = self._key(each, len(rows))
        elif isinstance(source, Slice) and source.number is not None:
            net = self._keys.setdefault(source.net, len(self._keys))
            found[:] = (net << 24 | source.number) << 24 | np.asarray(source.start)
        return found

    def _slices(self, keys: IntArray, width: int) -> Source:
        """What such numbers stand for."""
        nets, number, start = keys >> 48, keys >> 24 & 0xFFFFFF, keys & 0xFFFFFF
        used, which = np.unique(nets, return_inverse=True)
        names = [*self._keys]
        found = tuple(Slice.made(names[k], number, start, width) for k in used.tolist())
        return found[0] if len(found) == 1 else OneOf(found, which.ravel())

    def module_of(self, name: str, arrays: list[Array]) -> str:
        """Which of several arrays each member is of; others are none."""
        which = np.full(self.size, len(arrays))
        for number, array in enumerate(arrays):
            which[array.index] = number
        table = self._tables.entry(f"{name}_module", self.size, np.arange(self.size), which,
                                   address_width(len(arrays) + 1))  # fmt: skip
        return entry_of(*table)

    def pin(self, sources: Sequence[Source], array: Array, label: str) -> str:
        """What drives an input of the instances of an array."""
        joined = _joined(sources, self._width)
        texts = [self.source(each, array, f"{label}_{k}") for k, each in enumerate(joined)]
        if len(texts) > 1 and texts == [*map(self._word, range(len(self._words)))]:
            return "rx"
        return concatenated(texts[::-1])

    def source(self, source: Source, array: Array, label: str) -> str:
        """What drives some bits of an input of the instances of an array."""
        if isinstance(source, Fixed):
            return f"{source.width}'d{source.value}"
        if isinstance(source, Numbers):
            table, bits = self._tables.entry(
                label, self.size, array.index, source.values, source.width
            )
            return entry_of(table, bits)
        word = self._arrived(source, array, label)
        if word:
            return word
        if isinstance(source, Slice):
            return self._slice(source, array, label)
        if self._nets.in_one_scope(source.slices):
            name, of = self._nets.choice_of(source.slices)
            first = source.slices[0]
            scope = self._in(self._nets.owner[first.net], first.number, array, label)
            low = self.low(array, source.which, of, len(source.slices), label)
            return f"{scope}{name}[{low}{up(first.width)}]"
        return self._chosen(source, array, label)

    def _word(self, k: int) -> str:
        """A word that arrives."""
        return bits_of("rx", k * self._width, self._width, len(self._words) * self._width)

    def _arrived(self, source: Slice | OneOf, array: Array, label: str) -> str:
        """The same where it is words that arrive, or results of them; else nothing."""
        if source.width != self._width:
            return ""
        keys, number = self._key(source, len(array)), np.full(len(array), -1)
        for k, words in enumerate(self._words):
            number[(words[array.index] == keys) & (keys >= 0) & (number < 0)] = k
        if (number < 0).all():
            return ""
        name, count = "rx", len(self._words)
        for net, key in self._keys.items():
            at = (number < 0) & (keys >> 24 == (key << 24 | array.index))
            if at.any() and self._nets.owner.get(net) == self._name:
                number[at] = count + (keys[at] & 0xFFFFFF) // self._width
                name, count = self._with(name, net), count + self._nets.width_of(net) // self._width
        if (number < 0).any():
            return ""
        if (number == number[0]).all():
            return self._word(int(number[0]))
        low = self.low(array, number, self._width, count, label)
        return f"{name}[{low}{up(self._width)}]"

    def _with(self, words: str, net: str) -> str:
        """A net that has the words of another net, and those of one of the members behind them."""
        name = f"{words}_{self._nets.local[net]}"
        if name not in self._joined:
            self._joined[name] = self._joined.get(words, len(self._words) * self._width)
            self._joined[name] += self._nets.width_of(net)
            text = f"{name} = {{{self._nets.local[net]}, {words}}};"
            self.declared.append(f"      wire {range_of(self._joined[name])}{text}")
        return name

    def _slice(self, source: Slice, array: Array, label: str) -> str:
        """Bits of a net."""
        nets, net = self._nets, source.net
        if source.number is None:
            name, of = net, nets.singles[net]
        elif (owner := nets.owner.get(net)) is not None:
            scope = self._in(owner, source.number, array, label)
            name, of = scope + nets.local[net], nets.width_of(net)
        else:
            name, of, count = nets.vector_of(net)
            low = self.low(array, source.number, of, count, label)
            if not isinstance(source.start, int):
                low += f" + {self.number(array, source.start, f'{label}_bit')}"
            elif source.start:
                low += f" + {source.start}"
            return f"{name}[{low}{up(source.width)}]"
        if isinstance(source.start, int):
            return bits_of(name, source.start, source.width, of)
        if source.width == of:  # a single bit has no number
            return name
        assert not (source.start % source.width).any(), "words lie side by side"
        words = source.start // source.width
        low = self.low(array, words, source.width, of // source.width, f"{label}_word")
        return f"{name}[{low}{up(source.width)}]"

    def low(self, array: Array, values: IntArray, width: int, count: int, label: str) -> str:
        """The lowest bit of one of so many words; as an index it has as many bits as it takes."""
        number = self.number(array, values, label, address_width(count) if width == 1 else 0)
        if width == 1:
            return number
        apart = number[-1] != "]" and " " in number
        return f"{width} * ({number})" if apart else f"{width} * {number}"

    def _in(self, scope: str, members: IntArray | None, array: Array, label: str) -> str:
        """What stands in front of the name of a net of members of a scope."""
        assert members is not None, "there are many of it"
        if scope == self._name and (members == array.index).all():
            return ""
        return f"{scope}[{self.number(array, members, f'{label}_of')}]."

    def _chosen(self, source: OneOf, array: Array, label: str) -> str:
        """A net of its own that is assigned one of several."""
        table, bits = self._tables.entry(f"{label}_net", self.size, array.index, source.which)
        self.declared += [f"      wire {range_of(source.width)}{label};",
                          f"      case ({entry_of(table, bits)})"]  # fmt: skip
        for rows, each in source.each():
            some = replace(array, index=array.index[rows])
            text = self._slice(each, some, label)
            number = int(source.which[rows[0]])
            block = f"begin : {label}_{number}_drives assign {label} = {text}; end"
            self.declared.append(f"        {bits}'d{number}: {block}")
        self.declared += [f"        default: begin : no_{label} end", "      endcase"]
        return label

    def number(self, array: Array, values: IntArray, label: str, bits: int = 0) -> str:
        """A number of each instance, by that of the member it is of."""
        index = array.index
        if (values == values[0]).all():
            return str(values[0])
        if (values == index).all():
            return "k"
        for shift in range(1, 16):
            if (values == index >> shift).all():
                return f"k / {1 << shift}"
        step = (values[1] - values[0]) // max(index[1] - index[0], 1)
        if step > 0 and (values == (first := values[0] - step * index[0]) + step * index).all():
            return f"{step} * k + {first}" if first else f"{step} * k"
        return entry_of(*self._tables.entry(label, self.size, index, values, bits))


def _joined(sources: Iterable[Source], word: int) -> list[Source]:
    """Sources in which bits side by side are one, but for those as wide as words that arrive."""
    found: list[Source] = []
    for each in sources:
        last = found[-1] if found else None
        if (
            isinstance(each, Slice)
            and isinstance(last, Slice)
            and word not in (each.width, last.width)
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
