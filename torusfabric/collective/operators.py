"""Reduction operators: each combines two words in numpy, in hardware and in a proof.

An `Operator` is one value that holds everything the package needs to know about an operation.
Compiler, simulators, hardware generator and prover ask the operator, and contain no list of names.
Another package adds an operator by `register_operator`, or by an entry point.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from operator import add, and_, or_, xor
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..toolchain.exports import load_entry_points
from ..toolchain.public import public, public_class, require_fields
from ..toolchain.values import is_iterable, message_text, parse_non_negative_int, unknown_name_error
from .float_operators import float_operator_parts
from .floats import FORMATS

if TYPE_CHECKING:
    from amaranth.hdl import Module, Value

__all__ = ["ADD", "FLOATS", "OPERATORS", "SATURATING", "SIGNED", "Operator", "parse_operators",
           "register_operator"]  # fmt: skip

Words: TypeAlias = NDArray[Any]

#: The group of entry points by which other packages offer operators.
ENTRY_POINT_GROUP = "torusfabric.operators"

#: The form of an operator's name.
_NAME = re.compile(r"[a-z][a-z0-9_]*(:[a-z][a-z0-9_]*)*")

#: Widths at which the claims of an operator are tested, unless the operator lists its own widths.
TESTED_WIDTHS = (1, 2, 7, 32, 64)

#: Random words for the test of each width, besides the corner cases.
N_RANDOM_WORDS = 64


@public_class
@dataclass(frozen=True)
class Operator:
    """A commutative operation on two words.

    Parameters
    ----------
    name : str
        The name that `--op` takes: lower-case letters, digits and ``_``. Suffixes after colons name
        the kind of numbers, as in ``add:fp32``. The suffix ``:signed`` marks a two's complement
        operator where an unsigned one has the same name.
    function : callable
        Function from two arrays of words and their width to the array of results. Words are uint64,
        or Python integers in an array of objects if they are wider than 64 bits.
    identity : callable
        Function from the width to the identity e: ``combine(x, e) == x`` for all words x.
    hardware : callable
        Function from an Amaranth module and two word signals to the result. It may add submodules,
        and registers of the domain ``sync``, to the module. It must accept a new pair of words in
        every cycle.
    latency : int, optional
        Cycles from the operands to the result of `hardware`; 0 if `hardware` is combinational.
    proof : callable, optional
        Function from the names of two words and their width to a SystemVerilog expression of the
        result. An operator without one can be simulated and built, but not proved.
    widths : tuple of int, optional
        Word widths that the operator accepts; empty for all widths.
    associative : bool, optional
        True if any order of combining several words gives the same result. A floating-point or
        saturating sum is not associative: hardware combines it in the order of the program, and an
        allreduce in which nodes would receive different bits is refused.
    commutative : bool, optional
        True if ``combine(a, b) == combine(b, a)``. Other operators are refused, because words are
        combined in the order in which they arrive.
    idempotent : bool, optional
        True if ``combine(x, x) == x``.
    typical : callable, optional
        Function from random words, an array of shape (.., words), and their width to typical
        operands, for random runs; by default the random words themselves.
    unit_roundoff : float, optional
        For a floating-point sum, the largest relative error of one addition; otherwise 0.

    Examples
    --------
    >>> import numpy as np
    >>> add = Operator.parse("add")
    >>> add.reduce(np.array([[200], [100]], np.uint64), width=8)
    array([44], dtype=uint64)
    >>> Operator.parse("max:signed").identity(width=8)
    128
    """

    name: str
    function: Callable[[Words, Words, int], Words] = field(compare=False, repr=False)
    identity: Callable[[int], int] = field(compare=False, repr=False)
    hardware: Callable[[Module, Value, Value], Value] = field(compare=False, repr=False)
    latency: int = field(default=0, compare=False, repr=False)
    proof: Callable[[str, str, int], str] | None = field(default=None, compare=False, repr=False)
    widths: tuple[int, ...] = field(default=(), compare=False, repr=False)
    associative: bool = field(default=True, compare=False, repr=False)
    commutative: bool = field(default=True, compare=False, repr=False)
    idempotent: bool = field(default=False, compare=False, repr=False)
    typical: Callable[[Words, int], Words] | None = field(default=None, compare=False, repr=False)
    unit_roundoff: float = field(default=0.0, compare=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the operator as its name, which the other process looks up in its own registry."""
        return Operator.parse, (self.name,)

    @staticmethod
    def parse(text: str) -> Operator:
        """Return the operator that a user names, such as ``add`` or ``max:signed``.

        Parameters
        ----------
        text : str
            Name under which the operator is registered.

        Raises
        ------
        InputError
            If no operator is registered under this name.
        """
        if isinstance(text, str) and text not in REGISTERED:
            _load_entry_points()
        if not isinstance(text, str) or text not in REGISTERED:
            raise unknown_name_error("Operator", text, [*REGISTERED])
        return REGISTERED[text]

    @property
    def signed(self) -> bool:
        """True if the name ends in ``:signed``.

        Words are then two's complement, and an unsigned operator has the same name without
        ``:signed``.
        """
        return self.name.endswith(":signed")

    @property
    def label(self) -> str:
        """The name in the form of an identifier of Python and Verilog, such as ``max_signed``."""
        return self.name.replace(":", "_")

    def check_width(self, width: int) -> None:
        """Check that the operator accepts words of `width` bits.

        Raises
        ------
        InputError
            If the operator does not accept this width.
        """
        if self.widths and width not in self.widths:
            wanted = " or ".join(map(str, self.widths))
            raise InputError(f"Width must be {wanted} for operator {self.name}, not {width}")

    def combine(self, a: Words, b: Words, width: int) -> Words:
        """Combine two arrays of words elementwise.

        Parameters
        ----------
        a, b : ndarray of uint64, or of Python integers if words are wider
        width : int
            Bits of a word.
        """
        return self.function(a, b, width)

    def reduce(self, words: Words, width: int) -> Words:
        """Combine all rows of an array elementwise into one row, from the first to the last.

        Parameters
        ----------
        words : ndarray, shape (rows, ..)
        width : int
            Bits of a word.

        Returns
        -------
        ndarray, shape (..)
        """
        result: Words = words[0]
        for row in words[1:]:
            result = self.combine(result, row, width)
        return result

    def __str__(self) -> str:
        return f"signed {self.name.removesuffix(':signed')}" if self.signed else self.name


@public
def register_operator(operator: Operator) -> Operator:
    """Register an operator under its name, for Python and for all commands.

    A package lists its operators in entry points of the group ``torusfabric.operators``, so that
    commands find them.

    Raises
    ------
    InputError
        If a field is missing, if another operator has this name, or if a claim of the operator,
        such as `associative`, is false. Claims are tested on words of several widths: extreme ones,
        such as 0, and random ones.

    Examples
    --------
    Exclusive nor: bit k of the result is 1 where bits k of both words are equal.

    >>> xnor = Operator(
    ...     "xnor",
    ...     lambda a, b, width: a ^ b ^ a.dtype.type(2**width - 1),
    ...     identity=lambda width: 2**width - 1,
    ...     hardware=lambda m, a, b: ~(a ^ b),
    ... )
    >>> register_operator(xnor)
    Operator(name='xnor')
    >>> Operator.parse("xnor").label
    'xnor'
    """
    if not isinstance(operator, Operator):
        raise InputError(f"Operator must be a torusfabric.Operator, not {message_text(operator)}")
    _check_operator(operator)
    REGISTERED[operator.name] = operator
    return operator


def parse_operators(operators: Operator | str | Sequence[Operator | str]) -> tuple[Operator, ...]:
    """Return several operators; a text may name several, separated by commas.

    Raises
    ------
    InputError
        If a name is unknown, or `register_operator` would refuse one of the operators.

    Examples
    --------
    >>> [operator.name for operator in parse_operators("add,max:signed")]
    ['add', 'max:signed']
    """
    if isinstance(operators, Operator):
        operators = [operators]
    if not is_iterable(operators):
        raise InputError(f"Operators must be names, such as add,max, not {message_text(operators)}")
    each = operators.split(",") if isinstance(operators, str) else operators
    chosen = [item if isinstance(item, Operator) else Operator.parse(item) for item in each]
    for operator in chosen:
        if REGISTERED.get(operator.name) is not operator:
            _check_operator(operator)
    return tuple(chosen)


def _check_operator(operator: Operator) -> None:
    """Refuse an operator that lacks a field, has a name already in use, or makes a false claim.

    The claims are its identity, and properties such as `associative`.
    """
    _check_fields(operator)
    require_fields(operator)
    known = REGISTERED.get(operator.name, operator)
    if any(getattr(known, part.name) != getattr(operator, part.name) for part in fields(Operator)):
        raise InputError(f"Name of an operator must be a new one, not {operator.name!r}")
    for width in operator.widths or TESTED_WIDTHS:
        _check_claims(operator, width)


def _check_fields(operator: Operator) -> None:
    """Check that every field of `operator` has a value of the right type."""
    if not isinstance(operator.name, str) or not _NAME.fullmatch(operator.name):
        raise InputError(
            "Name of an operator must be lower-case letters, digits and _, not "
            f"{message_text(operator.name)}"
        )
    for part in ("function", "identity", "hardware", "proof", "typical"):
        given = getattr(operator, part)
        if not callable(given) and (given is not None or part not in ("proof", "typical")):
            raise InputError(
                f"{part.capitalize()} of operator {operator.name} must be a function, not "
                f"{message_text(given)}"
            )
    parse_non_negative_int(f"Latency of operator {operator.name}", operator.latency)
    if not operator.commutative:
        raise InputError(
            f"Operator {operator.name} must be commutative, because words are combined in the "
            "order in which they arrive"
        )


def _test_words(width: int) -> Words:
    """Return words of `width` bits on which properties such as `associative` are tested.

    They are corner cases, such as 0 and the largest word, and random words.
    """
    top = (1 << width) - 1
    corners = sorted({0, 1 & top, top >> 1, top ^ top >> 1, top})
    random = np.random.default_rng(width).integers(0, top, N_RANDOM_WORDS, np.uint64, endpoint=True)
    return np.concatenate([np.array(corners, np.uint64), random])


def _check_claims(operator: Operator, width: int) -> None:
    """Check the identity of an operator, and the properties that it claims, on test words.

    The words have `width` bits. The properties are `commutative`, `associative` and `idempotent`.
    """
    words, combine = _test_words(width), operator.combine
    neutral = np.full_like(words, operator.identity(width))
    turned, other = words[::-1].copy(), np.roll(words, 7)
    claims = [
        ("have an identity that changes nothing", combine(words, neutral, width), words),
        ("have an identity that changes nothing", combine(neutral, words, width), words),
        ("be commutative", combine(words, turned, width), combine(turned, words, width)),
    ]
    if operator.associative:
        first = combine(combine(words, turned, width), other, width)
        claims.append(("be associative, or say that it is not", first,
                       combine(words, combine(turned, other, width), width)))  # fmt: skip
    if operator.idempotent:
        claims.append(("be idempotent, or not say so", combine(words, words, width), words))
    for claim, left, right in claims:
        if not np.array_equal(left, right):
            raise InputError(f"Operator {operator.name} must {claim} (it does not at {width} bits)")
        if (left >> np.uint64(width - 1) > 1).any():
            raise InputError(
                f"Operator {operator.name} must return words of {width} bits for words of {width} "
                "bits, not larger ones"
            )


@cache
def _load_entry_points() -> None:
    """Register the operators that entry points name, once."""
    load_entry_points(ENTRY_POINT_GROUP, "an operator", register_operator)


# The built-in operators. All are commutative, and most are associative, at any width.


def _infix_operator(
    name: str, sign: str, of: Callable[[Any, Any], Any], *, ones: bool = False
) -> Operator:
    """Return an operator that numpy, Amaranth and SystemVerilog all write with the same sign.

    With `ones`, all bits of its identity are 1; otherwise its identity is 0.

    `name` is the name under which users choose the operator, and `sign` its sign in SystemVerilog.
    `of` applies it to two numpy arrays or two Amaranth values.
    """

    def function(a: Words, b: Words, width: int) -> Words:
        mask = (1 << width) - 1
        result: Words = of(a, b) & (mask if a.dtype == object else a.dtype.type(mask))
        return result

    return Operator(
        name,
        function,
        lambda width: (1 << width) - 1 if ones else 0,
        # A sum has a carry bit more than its operands, which is cut off.
        lambda m, a, b: of(a, b)[: len(a)] if sign == "+" else of(a, b),
        proof=lambda a, b, width: f"{width}'({a} {sign} {b})",
        idempotent=sign in "&|",
    )


def _min_max_operator(name: str) -> Operator:
    """Return the operator for a minimum or maximum, signed or unsigned, according to `name`."""
    least, signed = name.startswith("min"), name.endswith(":signed")

    def function(a: Words, b: Words, width: int) -> Words:
        # With its highest bit inverted, two's complement sorts like unsigned numbers.
        flip = a.dtype.type(1 << (width - 1)) if a.dtype != object else 1 << (width - 1)
        less = (a ^ flip) < (b ^ flip) if signed else a < b
        return np.where(less if least else ~less.astype(bool), a, b)

    def identity(width: int) -> int:
        highest = 1 << (width - 1) if signed else 0
        return (1 << width) - 1 ^ highest if least else highest

    def hardware(m: Module, a: Value, b: Value) -> Value:
        from amaranth.hdl import Mux  # imported here because planning needs no Amaranth

        less = a.as_signed() < b.as_signed() if signed else a < b
        return Mux(less, a, b) if least else Mux(less, b, a)

    def proof(a: str, b: str, width: int) -> str:
        less = f"$signed({a}) < $signed({b})" if signed else f"{a} < {b}"
        return f"(({less}) ? {a} : {b})" if least else f"(({less}) ? {b} : {a})"

    return Operator(name, function, identity, hardware, proof=proof, idempotent=True)


def _saturating_operator(*, signed: bool) -> Operator:
    """Return the operator for sums that stop at the largest and the smallest word.

    Signed sums are not associative: 100 + 100 - 100 in 8 bits is 27 or 100.
    """

    def function(a: Words, b: Words, width: int) -> Words:
        word = (lambda value: value) if a.dtype == object else a.dtype.type
        mask, shift = word((1 << width) - 1), word(width - 1)
        if not signed:
            limited: Words = np.where(b > (a ^ mask), mask, a + b & mask)
            return limited
        total, top = a + b & mask, word(1 << (width - 1))
        overflows = ((a ^ total) & (b ^ total)) >> shift > 0
        # The largest word for two positive words, the smallest for two negative ones.
        limit = np.where(a >> shift > 0, top, top ^ mask)
        result: Words = np.where(overflows, limit, total)
        return result

    def hardware(m: Module, a: Value, b: Value) -> Value:
        from amaranth.hdl import Cat, Mux  # imported here because planning needs no Amaranth

        total = a + b
        if not signed:
            return total[: len(a)] | total[len(a)].replicate(len(a))
        overflows = (a[-1] ^ total[len(a) - 1]) & (b[-1] ^ total[len(a) - 1])
        return Mux(overflows, Cat((~a[-1]).replicate(len(a) - 1), a[-1]), total[: len(a)])

    def proof(a: str, b: str, width: int) -> str:
        total, ones = f"{width}'({a} + {b})", f"{{{width}{{1'b1}}}}"
        if not signed:
            return f"(({b} > ({a} ^ {ones})) ? {ones} : {total})"
        top = f"({ones} ^ ({ones} >> 1))"
        limit = f"((({a} & {top}) != 0) ? {top} : ({ones} >> 1))"
        return f"((({a} ^ {total}) & ({b} ^ {total}) & {top}) != 0 ? {limit} : {total})"

    return Operator(
        "add:saturating" + ":signed" * signed, function, lambda width: 0, hardware,
        proof=proof, associative=not signed,
    )  # fmt: skip


_SHARING = (
    _infix_operator("add", "+", add),
    *map(_min_max_operator, ("min", "max")),
    _infix_operator("and", "&", and_, ones=True),
    _infix_operator("or", "|", or_),
    _infix_operator("xor", "^", xor),
    *map(_min_max_operator, ("min:signed", "max:signed")),
)

#: Names of the built-in operators on unsigned words of any width, which share hardware.
OPERATORS = tuple(operator.name for operator in _SHARING if not operator.signed)

#: Names of the operators on two's complement words of any width that share hardware with those.
SIGNED = tuple(operator.name for operator in _SHARING if operator.signed)

#: Names of the sums that stop at the largest and the smallest word, at any width.
SATURATING = ("add:saturating", "add:saturating:signed")

#: Names of the floating-point operators; see `floats`.
FLOATS = tuple(f"{operation}:{kind}" for kind in FORMATS for operation in ("add", "min", "max"))

#: All registered operators by name, including those of other packages.
REGISTERED = {
    operator.name: operator
    for operator in (
        *_SHARING,
        *(_saturating_operator(signed=signed) for signed in (False, True)),
        *(Operator(name, **float_operator_parts(name)) for name in FLOATS),
    )
}

#: The default operator of a reduction.
ADD = REGISTERED["add"]
