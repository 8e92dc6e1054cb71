"""What the ports of a fabric whose nodes have streams are for."""

from ..rtl.fabric import Fabric
from ..rtl.streams import StreamPort, stream_ports
from .port_meaning import PortMeaning, Protocol

__all__ = ["stream_clocks", "stream_meanings"]


def stream_meanings(fabric: Fabric) -> dict[str, PortMeaning]:
    """What each port is for, by its name.

    Examples
    --------
    >>> import torusfabric as tf
    >>> fabric = tf.Fabric(tf.compile(tf.plan("2", "allgather")), width=8, top="stream")
    >>> stream_meanings(fabric)["m_axis_1_tid"].role
    'data'
    """
    ports = stream_ports(fabric.program, fabric.width, fabric.clocks)
    return {
        port.name: PortMeaning(_role(port), Protocol(port.protocol.lower()), port.meaning)
        for port in ports
    }


def stream_clocks(fabric: Fabric) -> dict[str, str | None]:
    """In the domain of which clock each port is, None for a clock."""
    ports = stream_ports(fabric.program, fabric.width, fabric.clocks)
    return {port.name: port.clock for port in ports}


def _role(port: StreamPort) -> str:
    """What a port is for, in a word."""
    if port.protocol == Protocol.CLOCK:
        return "clock"
    if port.protocol == Protocol.LEVEL:
        return "status" if port.direction == "out" else "reset"
    return "data"
