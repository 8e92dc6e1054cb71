"""The communication model of a schedule: how messages are switched, and how many a link carries."""

from ..toolchain.values import Choice

__all__ = ["Duplex", "Switching"]


class Switching(Choice):
    """The way in which a message passes the nodes on its path: store-and-forward or circuit.

    With store-and-forward, a message moves by one hop in a round. With circuits, the whole path is
    held for a round. The texts ``"store-and-forward"`` and ``"circuit"`` are accepted in place of
    the members.

    Examples
    --------
    >>> Switching("circuit") is Switching.CIRCUIT
    True
    >>> f"{Switching.STORE_AND_FORWARD}", Switching.STORE_AND_FORWARD.unit
    ('store-and-forward', 'step')
    """

    #: Each node on the path stores the message: one hop a round. The round is called a step.
    STORE_AND_FORWARD = "store-and-forward"
    #: The message holds all arcs of its path for the whole round.
    CIRCUIT = "circuit"

    @property
    def unit(self) -> str:
        """The word for a round: ``step`` or ``round``."""
        return "step" if self == Switching.STORE_AND_FORWARD else "round"


class Duplex(Choice):
    """The number of messages that a link carries at once: one in each direction, or one in all."""

    #: One message in each direction: the two arcs of a link are independent.
    FULL = "full"
    #: One message, in either direction.
    HALF = "half"
