"""What the ports of a fabric whose nodes have streams are for."""

from ..rtl.fabric import Fabric
from ..rtl.streams import stream_ports
from .port_meaning import PortMeaning, Protocol

__all__ = ["stream_meanings"]


def stream_meanings(fabric: Fabric) -> dict[str, PortMeaning]:
    """What each port is for, by its name.

    Examples
    --------
    >>> import torusfabric as tf
    >>> fabric = tf.Fabric(tf.compile(tf.plan("2", "allgather")), width=8, top="stream")
    >>> stream_meanings(fabric)["m_axis_1_tid"].role
    'data'
    """
    return {
        port.name: PortMeaning(
            "status" if port.protocol == Protocol.LEVEL else "data",
            Protocol(port.protocol.lower()),
            port.meaning,
        )
        for port in stream_ports(fabric.program, fabric.width)
    }
