"""The model of communication that a schedule keeps to."""

from ..toolchain.values import Choice

__all__ = ["Duplex", "Switching"]


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
