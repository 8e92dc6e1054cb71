"""The endpoint of a fabric whose tables are loaded."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Value
from amaranth.lib.wiring import In, Member

from ..endpoint import Endpoint, EndpointSettings
from ..endpoint_builder import NEVER, EndpointBuilder
from ..endpoint_reads import Inputs
from ..endpoint_shape import EndpointMemory, EndpointReader, EndpointShape
from ..memories import WritePort, address_width, choose
from ..modules import delayed
from ..multiplexer import select_code

__all__ = ["LoadedEndpoint", "LoadedEndpointBuilder"]


class LoadedEndpoint(Endpoint):
    """An endpoint that stores what its table says, where the sequencer says.

    Parameters
    ----------
    late : bool
        Whether any mode may read words later.
    links : int
        Cycles of links.

    Members
    -------
    read_0, read_1 : In
        Cycles of the row, or in a loop by flits the flit; and the same times the chunks, by which
        flits lie apart in the memory of what the node sends.
    write_0 : In
        Where words are stored that arrive now; where rows stream, by a link.
    late : In(1)
        Whether words are read later, by the cycles of a link; if any mode may do so.
    streams : In(1)
        Whether the words of a row arrive while others pass, so that what the table says counts some
        cycles later; else it counts until all have arrived.
    """

    def __init__(
        self, shape: EndpointShape, settings: EndpointSettings, *, late: bool, links: int
    ) -> None:
        self._late, self.links = late, links
        super().__init__(shape, settings)

    def _from_sequencer(self) -> dict[str, Member]:
        bits = self.settings.address_bits
        strobes = {k for memory in self.shape.memories for k in memory.strobes}
        late = {"late": In(1)} if self._late else {}
        addresses = {name: In(bits) for name in ("read_0", "read_1", "write_0")}
        return (
            addresses | {"streams": In(1), **late} | {f"strobe_{k}": In(1) for k in sorted(strobes)}
        )

    def elaborate(self, platform: object) -> Module:
        """Build memories, readers and what selects between them."""
        return LoadedEndpointBuilder(self).build()


class _Inputs(Inputs):
    """What the sequencer and the table of the node give."""

    def __init__(self, m: Module, endpoint: LoadedEndpoint) -> None:
        super().__init__(m, endpoint)
        self._links = endpoint.links

    def _address(self, shape: EndpointReader) -> Value:
        memories, bits = shape.memories, self._endpoint.settings.address_bits
        # The last is of what the node sends, if it is read.
        own = memories[-1] == self._endpoint.shape.memories[-1].number
        word = self._now(self._endpoint.value(f"read_{int(own)}"))
        if own and (code := self._code(shape)) is not None:
            sent = code == select_code(len(memories), len(memories) - 1)
            word = Mux(sent, word, self._now(self._endpoint.value("read_0")))
        return (self._now(self.at(shape.address)) + word)[:bits]

    def _code(self, shape: EndpointReader) -> Value | None:
        return None if shape.code is None else self._now(self.at(shape.code))

    def _now(self, value: Value) -> Value:
        """A value in this cycle, or for a mode that reads late in one before."""
        if "late" not in self._endpoint.signature.members:
            return value
        before = delayed(self._m, value, self._links)
        return Mux(self._endpoint.value("late"), before, value)


class LoadedEndpointBuilder(EndpointBuilder):
    """Builds it."""

    def __init__(self, endpoint: LoadedEndpoint) -> None:
        super().__init__(endpoint)
        self._inputs, self._links = _Inputs(self.m, endpoint), endpoint.links

    def _stores(self, memory: EndpointMemory) -> WritePort:
        """What a memory stores of what arrives by its in-port, or of what an operator makes."""
        m, bits = self.m, self._links.bit_length()
        assert memory.enable is not None
        code, streams, passing = self._inputs.at(memory.enable), self.value("streams"), NEVER
        strobes = [self.value(f"strobe_{k}") for k in memory.strobes]
        if self._links <= len(strobes):
            # Where rows stream, a word has come by one link, or is not stored; of it counts what
            # the table said as many cycles before.
            said = delayed(m, code[:bits], 1 + self._links)
            passing = streams & (said == self._links) & strobes[self._links - 1]
        resting = ~streams & choose([NEVER, *strobes], code)
        enable = delayed(m, passing | resting, 1, f"store_{memory.number}")
        address = self.value("write_0")[: address_width(memory.depth)]
        return WritePort(self._held(address, "stores_at"), self.arriving(memory), enable)
