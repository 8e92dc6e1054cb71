"""The model of communication that a schedule keeps to."""

from enum import Enum, EnumMeta
from typing import Any, NoReturn

from ..toolchain.values import no_such

__all__ = ["Duplex", "Switching"]


class _OfWords(EnumMeta):
    """Takes words alone: an array is not to be compared with any."""

    def __call__(cls, value: object, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(value, str):
            raise no_such(cls.__name__, value, map(str, cls))
        return super().__call__(value, *args, **kwargs)


class Choice(str, Enum, metaclass=_OfWords):
    """One of several words; equal to the word itself, as in a schedule file."""

    __str__ = str.__str__

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        raise no_such(cls.__name__, value, list(cls))


class Switching(Choice):
    """How a message passes the nodes on its way.

    Examples
    --------
    >>> Switching("circuit") is Switching.CIRCUIT
    True
    >>> f"{Switching.STORE_AND_FORWARD}", Switching.STORE_AND_FORWARD.unit
    ('store-and-forward', 'step')
    """

    #: Each node on the way stores it: one hop a round, which then is also called a step.
    STORE_AND_FORWARD = "store-and-forward"
    #: A path of arcs is held for the whole round.
    CIRCUIT = "circuit"

    @property
    def unit(self) -> str:
        """What a round is called: ``step`` or ``round``."""
        return "step" if self == Switching.STORE_AND_FORWARD else "round"


class Duplex(Choice):
    """How many messages a link carries at once."""

    #: One each way: a link is two arcs.
    FULL = "full"
    #: One.
    HALF = "half"
