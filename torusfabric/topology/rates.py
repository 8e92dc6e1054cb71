"""Link rates as users write them: flits a cycle, as a whole number or a ratio.

A *rate* p/q stands for p parallel links, each of which carries a flit every q cycles.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from numbers import Rational, Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..errors import InputError
from ..toolchain.values import message_text

__all__ = ["MOST_LINKS", "MOST_SPACING", "AttributeRate", "Rates", "is_attribute", "list_rates",
           "parse_rate"]  # fmt: skip

#: The most parallel links of a rate p/q, p; and the most cycles from a flit to the next, q.
MOST_LINKS, MOST_SPACING = 16, 16

#: Rates in any form that users may pass: one rate for all links, a mapping from axes or links to
#: rates, or text such as ``1/2``, ``0:2,1:1/2`` and ``0:+0=1/2``.
Rates: TypeAlias = "int | float | Fraction | str | Mapping[Any, Any]"

#: An attribute of the edges of a graph file, and its value at a flit a cycle.
_ATTRIBUTE = re.compile(r"([^\W\d][^/,:=%]*)(?:/([0-9]{1,12}(?:\.[0-9]{1,6})?))?")

#: The form of a rate in text.
_RATE = re.compile(r"([0-9]{1,3})(?:/([0-9]{1,3}))?")


class AttributeRate(NamedTuple):
    """The rates of links that an attribute of edges states, such as ``capacity/50``.

    Parameters
    ----------
    key : str
        The name of the attribute.
    unit : Fraction
        The value of the attribute at a flit a cycle.
    """

    key: str
    unit: Fraction

    @classmethod
    def parse(cls, text: str) -> AttributeRate:
        """Return the attribute and the unit of a text such as ``capacity/50``.

        Examples
        --------
        >>> AttributeRate.parse("capacity/50").unit
        Fraction(50, 1)
        """
        match = _ATTRIBUTE.fullmatch(text)
        unit = Fraction(match[2] or 1) if match else Fraction(0)
        if not match or not unit:
            raise InputError(
                "Rate of a graph must be an attribute of its edges and the value of a flit a "
                f"cycle, as in capacity/50, not {message_text(text)}"
            )
        return cls(match[1], unit)

    def rate_of(self, value: object, edge: str) -> Fraction:
        """Return the rate of an edge with a value of the attribute; `edge` names it in messages."""
        try:
            if value is None or isinstance(value, bool):
                raise ValueError
            found = Fraction(str(value)) / self.unit
        except ValueError:
            raise InputError(
                f"Attribute {self.key} of {edge} must be a number, not {message_text(value)}"
            ) from None
        owner = f"Attribute {self.key} of {edge}, divided by {self.unit},"
        return parse_rate(str(found), owner=owner)


def is_attribute(rate: object) -> bool:
    """Return True if a rate names an attribute of the edges of a graph file.

    Examples
    --------
    >>> is_attribute("capacity/50"), is_attribute("0:+0=1/2")
    (True, False)
    """
    return isinstance(rate, str) and bool(_ATTRIBUTE.fullmatch(rate))


def parse_rate(given: object, *, owner: str = "Rate") -> Fraction:
    """Return a rate in flits a cycle: a whole number, a ratio, or a decimal fraction.

    Parameters
    ----------
    owner : str
        The subject of the error message.

    Raises
    ------
    InputError
        If it is no rate, or if its terms are too large.

    Examples
    --------
    >>> parse_rate("2/4"), parse_rate(2), parse_rate(0.25)
    (Fraction(1, 2), Fraction(2, 1), Fraction(1, 4))
    """
    rate, text = None, str(given).strip()
    if isinstance(given, str) and (match := _RATE.fullmatch(text)):
        rate = Fraction(int(match[1]), int(match[2] or 1)) if match[2] != "0" else None
    elif isinstance(given, str) and re.fullmatch(r"[0-9]{1,3}\.[0-9]{1,6}", text):
        rate = Fraction(text)
    elif isinstance(given, Rational) and not isinstance(given, bool):
        rate = Fraction(given)
    elif isinstance(given, Real) and not isinstance(given, bool) and np.isfinite(float(given)):
        rate = Fraction(float(given))
    if rate is None or not 1 <= rate.numerator <= MOST_LINKS or rate.denominator > MOST_SPACING:
        raise InputError(
            f"{owner} must be flits a cycle, from 1/{MOST_SPACING} to {MOST_LINKS}, such as 2, 1/2 "
            f"or 3/2, not {message_text(given)}"
        )
    return rate


def list_rates(rates: Rates) -> list[tuple[str, str, Fraction]]:
    """Return the entries of rates, as tuples of a kind, a place and a rate.

    The kind is "" for all links, ":" if the place is an axis, and "=" if it is a link.
    """
    given: list[tuple[str, object]] = []
    if isinstance(rates, Mapping):
        given = [
            (f"{place}{':' if str(place).isdecimal() else '='}", rate)
            for place, rate in rates.items()
        ]
    elif isinstance(rates, str):
        for word in re.split(r",(?![^()]*\))", rates):
            place, rate = re.fullmatch(r"(.*=|[0-9]{1,3}:)?(.*)", word.strip(), re.DOTALL).groups()  # type: ignore[union-attr]
            given.append((place or "", rate))
    else:
        given = [("", rates)]
    entries = [(place[-1:], place[:-1], parse_rate(rate)) for place, rate in given]
    places = [place for _, place, _ in entries]
    for place in places:
        if places.count(place) > 1:
            what = f"{place} twice" if place else "twice for all links"
            raise InputError(f"Rate must be given once for each axis or link, not for {what}")
    if not entries:
        raise InputError("Rates must name a rate, such as 2, 0:2 or 0:+0=1/2")
    return entries
