"""The words that each node sends and receives, by the definition of the collective.

The bench compares the fabric with these words. They follow from the manifest alone, and share no
code with the fabric. A *part* is the data that a node sends to, or receives from, one other node.
"""

import operator
import random
import re
from collections.abc import Callable
from functools import reduce
from importlib import import_module
from itertools import product
from typing import Any, TypeAlias

__all__ = ["PERSONALIZED", "Combine", "Words", "pack_beats", "combine_function", "combine_in_tree",
           "expected_words", "groups_of_axes", "flit_of_beat", "operand_orders", "random_word",
           "sent_part_count"]  # fmt: skip

#: Words by (part or origin, flit).
Words: TypeAlias = dict[tuple[int, int], int]

#: Function that combines a word of each position into one.
Combine: TypeAlias = Callable[[list[Any]], Any]

#: Collectives in which a node sends a different part for each node of its group.
PERSONALIZED = ("scatter", "alltoall", "reduce-scatter")

OPERATORS: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "min": min,
    "max": max,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}

#: Bits of the fraction of floating-point words, by the format in the name of an operator.
FRACTION_BITS = {"fp32": 23, "bf16": 7, "fp16": 10}


def pack_beats(words: Words, manifest: dict[str, Any]) -> Words:
    """Combine flits to words of a port, and return these words.

    A word of a port has several flits (a beat), the first one in the low bits. The keys of `words`
    are (part, flit), and each value is one flit; the keys of the result are (part, beat).
    `manifest` is the content of ``manifest.json``; it has the beat and the width of a flit.
    """
    beat, found = manifest.get("beat", 1), Words()
    for (part, flit), word in words.items():
        at = part, flit // beat
        found[at] = found.get(at, 0) | word << flit % beat * manifest["width"]
    return found


def flit_of_beat(word: int, flit: int, manifest: dict[str, Any]) -> int:
    """Return one flit, given the word of a port that contains it and others.

    `flit` is the number of the flit in its part of the message. `manifest` is the content of
    ``manifest.json``; it has the beat and the width of a flit.
    """
    width: int = manifest["width"]
    beat: int = manifest.get("beat", 1)
    return word >> flit % beat * width & ((1 << width) - 1)


def groups_of_axes(topology: dict[str, Any], nodes: int, axes: list[int]) -> list[list[int]]:
    """Return the groups of a collective that runs along some axes of a torus.

    Parameters
    ----------
    topology : dict
        Entry ``topology`` of the manifest.
    nodes : int
        Number of nodes of the topology.
    axes : list of int
        Axes along which the collective runs.

    Returns
    -------
    list of (list of int)
        Nodes of each group, in the order of their positions. A topology without sides is a single
        group.
    """
    sides = topology.get("sides")
    if sides is None:
        return [list(range(nodes))]
    members: dict[tuple[int, ...], list[int]] = {}
    for node, at in enumerate(product(*map(range, sides))):
        others = tuple(x for axis, x in enumerate(at) if axis not in axes)
        members.setdefault(others, []).append(node)
    return list(members.values())


def sent_part_count(mode: dict[str, Any], size: int) -> int:
    """Return the number of different messages (parts) that a node sends in a run.

    In an all-to-all it is `size`, the number of nodes in the largest group; in an exchange the
    number of offsets; in a broadcast 1. `mode` is an entry of ``modes`` in the manifest.
    """
    collective = mode["collective"]
    if collective == "exchange":
        return len(mode["offsets"])
    if collective == "pattern":
        return len(mode["origins"][0])
    return size if collective in PERSONALIZED else 1


def operand_orders(
    mode: dict[str, Any], length: int, root: int, group: int
) -> list[list[str]] | None:
    """Return the trees by which a run combines words: for each part, the trees of its flits.

    Flit f of a part with n trees has tree f mod n, such as ``((0 1) 2)``: the words of positions 0
    and 1 are combined first. The result is None if the order does not matter.

    Parameters
    ----------
    mode : dict
        Entry of the manifest for the mode.
    length : int
        Flits of a message.
    root : int
        Position of the root.
    group : int
        Number of the group, in the order of the groups of the mode.
    """
    known = [
        entry
        for entry in mode.get("operand_orders", [])
        if entry["from"] <= length and entry["root"] in (root, None)
    ]
    if not known:
        return None
    trees = known[-1]["trees"]
    return [[trees[k] for k in numbers] for numbers in known[-1]["tree_of_flit"][group]]


def combine_in_tree(tree: str, words: list[Any], combine: Combine) -> Any:
    """Combine words pair by pair, in the order of a tree such as ``((0 1) 2)``.

    `combine` is called with a list of two words. A number of the tree is an index of `words`.
    """
    stack: list[Any] = []
    for token in re.findall(r"\d+|\)", tree):
        if token == ")":
            second, first = stack.pop(), stack.pop()
        stack.append(combine([first, second]) if token == ")" else words[int(token)])
    (word,) = stack
    return word


def expected_words(
    mode: dict[str, Any],
    sent: list[Words],
    root: int,
    combine: Combine,
    orders: list[list[str]] | None = None,
) -> list[Words]:
    """Return the words that each node of a group receives, by the definition of the collective.

    A node is identified by its position in the group. A *part* is the data that a node sends to one
    other node, or to all.

    Parameters
    ----------
    mode : dict
        Entry of the manifest for the mode.
    sent : list of dict
        For each position, the words that it sends, by (part, flit).
    root : int
        Position of the root.
    combine : function of list -> word
        Operator of a reduction.
    orders : list of (list of str), optional
        Trees by which words are combined, from `operand_orders`.

    Returns
    -------
    list of dict
        For each position, the words that it receives, by (origin, flit). In an exchange or halo,
        the number of the offset takes the place of the origin. Combined words have origin 0. A
        position that receives nothing has an empty dict.
    """
    positions = range(len(sent))
    flits = sorted({flit for words in sent for _, flit in words})
    every = [(origin, flit) for origin in positions for flit in flits]

    def combine_place(part: int, flit: int) -> Any:
        words = [each[part, flit] for each in sent]
        if orders is None:
            return combine(words)
        trees = orders[part if mode["collective"] in PERSONALIZED else 0]
        return combine_in_tree(trees[flit % len(trees)], words, combine)

    sums = {place: combine_place(*place) for place in sent[0]} if mode["operators"] else {}
    origins = [
        [(k, origin) for k, origin in enumerate(each) if origin is not None and origin < len(sent)]
        for each in mode.get("origins", [])
    ]
    receive = {
        "barrier": lambda p: sent[p],
        "broadcast": lambda p: {(0, f): sent[root][0, f] for f in flits},
        "allgather": lambda p: {(o, f): sent[o][0, f] for o, f in every},
        "gather": lambda p: {(o, f): sent[o][0, f] for o, f in every} if p == root else {},
        "scatter": lambda p: {(0, f): sent[root][p, f] for f in flits},
        "alltoall": lambda p: {(o, f): sent[o][p, f] for o, f in every},
        "reduce": lambda p: sums if p == root else {},
        "allreduce": lambda p: sums,
        "reduce-scatter": lambda p: {(0, f): sums[p, f] for f in flits},
        "exchange": lambda p: {(k, f): sent[o][k, f] for k, o in origins[p] for f in flits},
        "halo": lambda p: {(k, f): sent[o][0, f] for k, o in origins[p] for f in flits},
        "pattern": lambda p: {(k, f): sent[o][k, f] for k, o in origins[p] for f in flits},
    }[mode["collective"]]
    received = [receive(position) for position in positions]
    for words, lengths in zip(received, mode.get("received_flits", []), strict=False):
        for part, flit in [*words]:
            if flit >= lengths[part]:
                del words[part, flit]
    return received


def combine_function(manifest: dict[str, Any], mode: dict[str, Any], operation: int = 0) -> Combine:
    """Return the operator of a run, as a function from a list of words to one word.

    Parameters
    ----------
    manifest : dict
        Manifest of the fabric. It says where to import operators that packages define.
    mode : dict
        Entry of the manifest for the mode.
    operation : int
        Number of the operator in the mode.
    """
    if not mode["operators"]:
        return max
    name: str = mode["operators"][operation]
    width: int = manifest["width"]
    if name in manifest.get("operator_functions", {}):
        return _package_operator(manifest["operator_functions"][name], width)
    if name == "add:saturating":
        return lambda words: min(sum(words), (1 << width) - 1)
    if name == "add:saturating:signed":
        return _signed_saturating_sum(width)
    base, _, kind = name.partition(":")
    if kind in FRACTION_BITS and base in ("min", "max"):
        return _float_choice(base, width, FRACTION_BITS[kind])
    if kind in FRACTION_BITS and base == "add":
        return _float_sum(width, FRACTION_BITS[kind])
    if base not in OPERATORS or kind not in ("", "signed"):
        raise ValueError(f"Operator {name} must be a function of a module for this bench")
    sign, mask = 1 << width - 1 if kind else 0, (1 << width) - 1

    def combine(words: list[int]) -> int:
        # With the sign bit inverted, words are in the order of their signed values.
        return (reduce(OPERATORS[base], (word ^ sign for word in words)) ^ sign) & mask

    return combine


def random_word(generator: random.Random, width: int, operators: list[str]) -> int:
    """Return a random word; seven of eight have close exponents if an operator adds floats.

    Why: a sum of numbers of very different sizes is the larger one, in any order.
    """
    word = generator.getrandbits(width)
    kinds = {name.removeprefix("add:") for name in operators} & FRACTION_BITS.keys()
    if not kinds or not generator.randrange(8):
        return word
    fraction_bits = FRACTION_BITS[min(kinds)]
    exponents = (1 << width - 1 - fraction_bits) - 1
    near = (exponents >> 1) - 4 + generator.randrange(8)
    return word & ~(exponents << fraction_bits) | near << fraction_bits


def _signed_saturating_sum(width: int) -> Combine:
    """Return the sum of two's complement words that stops at the largest and the least word."""
    top = 1 << width - 1

    def combine(words: list[int]) -> int:
        total = sum((word ^ top) - top for word in words)
        return max(-top, min(total, top - 1)) & (2 * top - 1)

    return combine


def _float_sum(width: int, fraction_bits: int) -> Combine:
    """Return the sum of two floating-point words of `width` bits, rounded to nearest even.

    A NaN operand is the result, of two NaNs the one with the larger magnitude.
    """
    top = 1 << width - 1
    infinity = (top - 1) >> fraction_bits << fraction_bits

    def integer_value(word: int) -> int:
        # In units of the least subnormal number, every number is an integer.
        exponent, fraction = divmod(word & (top - 1), 1 << fraction_bits)
        size = fraction + (1 << fraction_bits) << exponent - 1 if exponent else fraction
        return -size if word & top else size

    def combine(words: list[int]) -> int:
        least, most = sorted(words, key=lambda word: word & (top - 1))
        if most & (top - 1) >= infinity:
            if least ^ most == top and most & (top - 1) == infinity:
                return infinity | 1 << fraction_bits - 1
            return least & most if (least ^ most) & (top - 1) == 0 else most
        total = sum(map(integer_value, words))
        if total == 0:
            return least & most & top
        shift = max(abs(total).bit_length() - fraction_bits - 1, 0)
        kept, lost = divmod(abs(total), 1 << shift)
        half = (1 << shift) >> 1
        kept += shift > 0 and (lost > half or (lost == half and kept & 1))
        # The bit above the fraction adds 1 to the exponent, unless the number is subnormal.
        return min((shift << fraction_bits) + kept, infinity) | (total < 0) * top

    return combine


def _float_choice(operation: str, width: int, fraction_bits: int) -> Combine:
    """Return the minimum or maximum of floating-point words of `width` bits; a NaN wins."""
    top = 1 << width - 1
    infinity = (top - 1) >> fraction_bits << fraction_bits

    def rank_word(word: int) -> tuple[bool, int]:
        # Numbers of one sign are in the order of their magnitudes, negative ones in reverse.
        is_nan = word & (top - 1) > infinity
        return is_nan == (operation == "max"), word ^ (2 * top - 1 if word & top else top)

    choose = min if operation == "min" else max
    return lambda words: choose(words, key=rank_word)


def _package_operator(path: str, width: int) -> Combine:
    """Return the operator, a function of a list of words, that another package defines.

    `path` names the function, as ``module:function``, and `width` is the number of bits of a word.
    The package must be installed here.
    """
    import numpy as np  # here, since other operators need none

    module, _, name = path.partition(":")
    function, dtype = getattr(import_module(module), name), np.uint64 if width <= 64 else object

    def combine(words: list[int]) -> int:
        arrays = [np.array([word], dtype) for word in words]
        (combined,) = reduce(lambda a, b: function(a, b, width), arrays).tolist()
        return int(combined)

    return combine
