"""Rewriting: turns a program into canonical form, which every large enough room can execute.

The terms of this module:

- A *room* is the capacity of a loaded fabric.
- A *reader* is a read port of a node's memories. An *injection port* is an input of the crossbar
  at which a word that was read arrives.
- A *source* is an input that an out-port or an operator can select. A *stage* is the part of a node
  that provides it: an in-port, the result of an operator, an injection port, ..
- A *control point* is one selector, address or enable of a node, with one value for each row.
- A *slot* is a cycle in which the sequencer presents a row and a flit. A word is read, or stored,
  some cycles after its slot. The *word counter* counts the slots of a row.
- A *location* is a memory and the first address of a block in it.

The compiler gives each program the memories, readers and sources that suit it. The hardware of a
loaded fabric is built before its programs are known, so all programs use it in the same way. With P
ports, canonical form means:

- Memory p stores the words that arrive on in-port p, for p < P. Memory P is the send memory.
- Out-port p takes words from reader p. An operator takes words from any free reader.
- A row moves at most one block through each port. A row of several blocks is split into several.
- The store address of a row is the same at all nodes and memories, because the sequencer sends it.
  A *region* is a range of addresses, the same in all memories, for the blocks of a row. Two rows
  share a region only if no memory stores words of both::

    address   0 .. size - 1      size .. 2 size - 1
    region    0 (row 0, row 3)   1 (row 1)            ..

`_Rewriter` follows each block from the row in which it is stored to the rows that read it, and
replaces its old location by the new one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...errors import InputError
from ...program.address_map import AddressMap
from ...program.fields import (
    IDENTITY_MEMORY,
    IDLE,
    Action,
    Field,
    Order,
    Point,
    Sources,
    Stage,
    make_node_memories,
)
from ...program.timing import ADDRESS, COMBINE, MEMORY_AGE, PASS, SETTING
from ...rtl.flit_rows import round_up_to_beats
from ...topology import BoolArray, IntArray, Topology

if TYPE_CHECKING:
    from ...program import Program
    from ...program.fields import Loop
    from ...program.mode import Form

__all__ = ["canonical_sources", "operand_links", "rewrite_program"]

#: Later than all rows.
AFTER_ALL_ROWS = 1 << 60

#: The location of a block at a node: memory and first address.
_Place = tuple[int, int]


def canonical_sources(ports: int) -> Sources:
    """Return the numbering of sources in loadable programs.

    A source is an input that an out-port or an operator can select. A stage is the part of a node
    that provides it, such as an in-port or the result of an operator. Source k of a stage has the
    number ``stage * P + k``, where P is `ports`, the number of ports. All programs that loaded
    tables can hold (in *canonical form*) have these numbers.

    Examples
    --------
    Number 18 is the result of the operator behind in-port 2.

    >>> canonical_sources(4).by_number[Stage.EARLY_RESULT * 4 + 2]
    (<Stage.EARLY_RESULT: 4>, 2)
    """
    every = tuple(range(ports))
    injections = tuple((k,) for k in every)
    return Sources(
        ports, every, results=True, delayed_results=every, injections=injections, made=True
    )


def operand_links(topology: Topology) -> int:
    """Return the cycles from a new row at the out-ports to the same row at the operators.

    In each row of a program, out-ports select new inputs, and so do operators, this many cycles
    later. The result is the latency of a link, because the words that operators combine come over a
    link. If links have different latencies the result is 1; operators then select their inputs some
    cycles before the words of longer links arrive.
    """
    return topology.one_latency or 1


def rewrite_program(program: Program) -> Program:
    """Return a program in canonical form, which every large enough loaded fabric can execute.

    In canonical form each memory has a fixed use: memory p stores the words of in-port p.

    Parameters
    ----------
    program : Program
        A program of one form, for messages of any length. A program that is already in canonical
        form is returned as it is.

    Raises
    ------
    InputError
        If the program does something that loaded tables cannot express.

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("4x4", "alltoall", algorithm="matching"), max_flits=4)
    >>> found = rewrite_program(program)
    >>> found.loop.n_rows, found.cycles() - program.cycles()  # one more, to look up the form
    (8, 1)
    """
    return (
        program
        if program.loop.fields_of_action(Action.LAG)
        else _Rewriter(program).canonical_program()
    )


def _raise_unsupported(what: str, found: object) -> None:
    raise InputError(
        f"Loaded tables need a schedule {what}, which {found} is not; choose another algorithm, "
        "or fixed tables (--tables rom)"
    )


class _Rewriter:
    """The rewriting of one program into canonical form; `canonical_program` returns the result.

    In canonical form, all programs use the memories and read ports of a node in the same way:
    memory p stores the words of in-port p, out-port p sends the words of read port p, and a row
    moves at most one block through each port. A loaded fabric can execute any such program.

    The *new rows* are the old rows, but an old row of several blocks becomes several new rows.
    While it goes through the rows, a rewriter collects the new location (memory and first address)
    of each block.
    """

    def __init__(self, program: Program) -> None:
        self._program, self._loop = program, program.loop
        self._beat = program.form.beat
        #: Addresses of one part of the send memory.
        self._part_size = round_up_to_beats(program.flits, self._beat)
        #: Cycles of a link.
        self._links = program.topology.longest_link
        self._check_supported()
        loop = self._loop
        times = np.maximum(loop.blocks, 1)
        #: For each new row, the old row from which it comes, and the number of flits that come
        #: before its block in the old row.
        self._of = np.repeat(np.arange(loop.n_rows), times)
        block = np.arange(len(self._of)) - (np.cumsum(times) - times)[self._of]
        self._offset = block * loop.flits
        last = np.append(np.diff(self._of) > 0, True)
        self._pause = np.where(last, loop.pause[self._of], 0)
        self._blocks = np.minimum(loop.blocks, 1)[self._of]
        self._nodes, self._ports = program.topology.nodes, program.ports
        #: True if words of an in-port are stored uncombined, shape (rows, nodes, ports).
        self._kept = np.zeros((len(self._of), self._nodes, self._ports), bool)
        self._own = [self._sent_locations(node) for node in range(self._nodes)]
        #: For each node, from the old location of a block to its new locations, each with the first
        #: row that may read it.
        self._came: list[dict[_Place, list[tuple[int, _Place]]]] = [{} for _ in range(self._nodes)]

    def _check_supported(self) -> None:
        """Raise InputError if the program has a property that loaded tables cannot express.

        This method finds the properties that are visible before the rewriting; the rewriting itself
        finds the others.
        """
        program, loop = self._program, self._loop
        sources = loop.sources
        if not program.any_length:
            raise InputError(
                "Loaded tables need messages whose length each run chooses; give max_flits "
                "(--max-flits) in place of flits"
            )
        for operator in program.operators:
            if operator.latency:
                raise InputError(
                    f"Loaded tables need operators without registers, and {operator.name} has "
                    f"{operator.latency}; use fixed tables (--tables rom)"
                )
        if (
            max(program.blocks.messages_per_origin, program.blocks.messages_per_receiver)
            > program.topology.nodes
        ):
            _raise_unsupported("with no more offsets than nodes", program.schedule.collective)
        if loop.padded or (loop.least > 1 and loop.blocks.max() > 1):
            _raise_unsupported("whose steps end with their words", program.schedule.algorithm)
        if any(len(readers) > 1 for readers in sources.injections) or sources.injection_delay:
            _raise_unsupported("that adds at in-ports", program.schedule.algorithm)
        if sources.latency:
            _raise_unsupported("with operators of one cycle", program.schedule.algorithm)
        links = operand_links(program.topology)
        for action, delay in ((Action.SELECT, 0), (Action.OPERAND, links)):
            late = {field.delay - SETTING - delay for field in loop.fields_of_action(action)}
            # Operators may also change early, exactly when the first words of a row arrive. If rows
            # overlap, this is excluded later.
            self._early = action is Action.OPERAND and late == {PASS - links}
            if late - {0} and not self._early:
                _raise_unsupported("whose ports change at once", program.schedule.algorithm)

    @property
    def _may_wait(self) -> bool:
        """True if rows may be prolonged until their words have arrived.

        This is so if nodes store every word that arrives. A word that a node passes on in the same
        row could not wait.
        """
        loop = self._loop
        if loop.order is Order.FLIT or loop.has_operators:
            return False
        return bool(
            (
                (loop.selected_sources < 0)
                | (loop.selected_sources >= loop.sources.first_injection)
            ).all()
        )

    def canonical_program(self) -> Program:
        """Rewrite all rows, and return the new program, which loaded tables can hold."""
        program, loop, ports = self._program, self._loop, self._ports
        shape = len(self._of), self._nodes, ports
        select, operand = np.full((2, *shape), IDLE)
        reads, stores = np.full((*shape, 3), IDLE), np.full(shape, IDLE)
        blocks = self._find_stores(stores)
        late, least = stores.max(axis=(1, 2)), loop.least
        if self._may_wait and {*np.unique(stores[stores > 0]).tolist()} - {self._links}:
            # No longer pause than this: the last words of a run have to arrive after its last row
            # (see `Timing.drain_cycles`).
            self._pause, least = np.where(late > 0, late + 1, self._pause), 1
        streams = loop.order is Order.FLIT or bool((late >= self._pause).any())
        at, words = self._allocate_stores(stores, blocks, streams=streams)
        self._choose_sources({Action.SELECT: select, Action.OPERAND: operand}, reads)
        self._select_identities(select, operand, streams=streams)
        comes = {*np.unique(stores[stores > 0]).tolist()}
        read = {*np.unique(reads[..., 2][reads[..., 0] >= 0]).tolist()}
        alike = comes <= {self._links} and (read <= {0} or read <= {self._links})
        if streams and not alike and program.topology.spacing_multiple > 1:
            raise InputError(
                "Loaded tables need links of one latency where some have rates below 1; give all "
                f"links the latency of the slowest (--link-latency {self._links}), or use fixed "
                "tables (--tables rom)"
            )
        if streams and (not alike or (self._early and self._links > 1)):
            _raise_unsupported("whose words cross one link in a row", program.schedule.algorithm)
        write = at[:, None, None] + self._delay_offsets(stores, streams=streams)
        memory, first, lag = np.moveaxis(reads, -1, 0)
        made = Stage.EARLY_RESULT * ports + np.arange(ports)
        fields = [
            Field(Point(action, number), values[..., number], delay)
            for action, values, delay in (
                (Action.SELECT, select, SETTING),
                (Action.OPERAND, operand, SETTING + operand_links(program.topology)),
                (Action.MEMORY, memory, ADDRESS),
                (Action.READ, first, ADDRESS),
                (Action.LAG, np.where(first >= 0, lag, 0), ADDRESS),
                (Action.WRITE, np.where(stores > 0, write, IDLE), SETTING),
                (Action.SOURCE, np.broadcast_to(made, shape), SETTING),
                (Action.TAP, np.maximum(stores, 0), SETTING),
            )
            for number in range(ports)
        ]
        begins = np.flatnonzero(np.diff(self._of, prepend=-1))
        new_loop = replace(
            loop,
            pause=self._pause,
            blocks=self._blocks,
            least=least,
            fields=tuple(fields),
            sources=canonical_sources(ports),
            departure=begins[loop.departure],
            pitch=(1,) * ports + (program.schedule.chunks,),
        )
        own = self._nodes * self._part_size + 2 * self._beat * program.schedule.chunks
        form = self._canonical_form(new_loop)
        if form.timing.drain_cycles < 1:
            _raise_unsupported(
                "whose last words arrive when its rows are over", program.schedule.algorithm
            )
        return replace(
            program,
            forms=(form,),
            memories=make_node_memories(range(ports), 1),
            depth=np.tile([words] * ports + [own], (self._nodes, 1)),
            variant_of=np.arange(self._nodes),
            of_beats=None,
        )

    def _canonical_form(self, loop: Loop) -> Form:
        """Return the form of the new program, whose rows are those of `loop`.

        It has new address maps: the new location of each block that nodes send or receive. The
        locations of sent blocks are the same in all programs of a collective that fit one fabric,
        so that the host port writes messages without a look-up.
        """
        program, ports = self._program, self._ports
        layout = program.layout
        base = self._own_addresses()
        received = self._received_locations()[program.form.groups.node_of_map_row]
        shape = len(received), layout.recv_parts, layout.part_chunks
        memory, first = (received[..., k].reshape(shape) for k in (0, 1))
        return replace(
            program.form,
            loop=loop,
            send_map=AddressMap(np.full((1, *base.shape), ports), base[None]),
            receive_map=AddressMap(np.maximum(memory, 0), first),
            chosen=True,
            layout=0,
        )

    def _own_addresses(self) -> IntArray:
        """Return the first address of each block in the send memory of a node.

        The shape is (parts, chunks); a part is the message for one destination. The flits of a part
        lie in the order in which the host writes them: one beat of each chunk in turn.
        """
        layout = self._program.layout
        part, chunk = np.mgrid[: layout.send_parts, : layout.part_chunks]
        within = self._beat * chunk
        if layout.in_shares:
            within += self._beat * layout.part_chunks * part
        else:
            within += self._part_size * part
        places: IntArray = within
        return places

    def _row_values(self, action: Action, number: int) -> IntArray:
        """Return the values of one selector, address or enable of all nodes, in each new row.

        New rows are the rows after the rewriting; the values are from the old program. The shape is
        (new rows, nodes). `action` and `number` say which value is meant, such as `Action.SELECT`
        and 2 for the selector of out-port 2.
        """
        found: IntArray = self._loop.point_values(action, number)[self._of][
            :, self._program.variant_of
        ]
        return found

    def _locate_blocks(self, mapped: AddressMap, parts: int, node: int) -> list[_Place]:
        """Return the old location (memory, first address) of each block of a node.

        `mapped` is the address map of the blocks that nodes send, or of those that they receive.
        The result lists the blocks part by part (a part is the data for one destination, or from
        one origin), and within a part chunk by chunk. `parts` is the number of parts.
        """
        program = self._program
        blocks = np.mgrid[:parts, : program.layout.part_chunks].reshape(2, -1)
        memory, base = mapped.locate(program.form.groups.map_row_of_node[node], *blocks)
        return list(zip(memory.tolist(), base.tolist(), strict=True))

    def _sent_locations(self, node: int) -> dict[_Place, _Place]:
        """Return the new location of each block that a node sends, keyed by its old location.

        A location is (memory, first address). All new locations are in the send memory.
        """
        there = self._locate_blocks(
            self._program.form.send_map, self._program.layout.send_parts, node
        )
        places = zip(there, self._own_addresses().ravel().tolist(), strict=True)
        return {place: (self._ports, address) for place, address in places if place[1] >= 0}

    def _find_stores(self, stores: IntArray) -> list[tuple[int, int, int, _Place]]:
        """Find the words that nodes store in each new row; return their blocks.

        The method also fills `stores`, shape (new rows, nodes, in-ports), with a delay for each
        in-port whose words are stored: the number of cycles from the row, as the sequencer presents
        it, to the storing of its word.

        Returns
        -------
        list of (int, int, int, (int, int))
            For each stored block its new row, node, in-port, and old location as (memory, first
            address). The list is sorted.
        """
        listed, blocks = self._loop.sources.by_number, []
        for number, memory in enumerate(self._program.memories):
            field = self._loop.field(Action.WRITE, number)
            if memory.own or field is None:
                continue
            pitch = self._loop.pitch_of(number)
            write, source, tap = (
                self._row_values(action, number)
                for action in (Action.WRITE, Action.SOURCE, Action.TAP)
            )
            for row, node in zip(*np.nonzero((write >= 0) & (self._blocks > 0)[:, None]),
                                 strict=True):  # fmt: skip
                stage, port = listed[source[row, node]]
                late = field.delay - SETTING + int(tap[row, node])
                if stage not in (Stage.PORT, Stage.RESULT) or late < 1:
                    _raise_unsupported("that stores what arrives", self._program.schedule.algorithm)
                if stores[row, node, port] >= 0:
                    _raise_unsupported("that stores a word once", self._program.schedule.algorithm)
                base = int(write[row, node] + self._offset[row])
                if pitch != 1 and base >= pitch:
                    _raise_unsupported(
                        "whose blocks lie flit after flit", self._program.schedule.algorithm
                    )
                self._kept[row, node, port] = stage is Stage.PORT
                # Results are taken before the result register, so one stage earlier.
                stores[row, node, port] = late - COMBINE * (stage is Stage.RESULT)
                blocks.append((int(row), int(node), int(port), (number, base)))
        return sorted(blocks)

    def _allocate_stores(
        self, late: IntArray, blocks: list[tuple[int, int, int, _Place]], *, streams: bool
    ) -> tuple[IntArray, int]:
        """Allocate addresses for the blocks that each row stores, and record their new locations.

        A *region* is a range of addresses, the same in all memories; each row that stores gets a
        region.

        Parameters
        ----------
        late : ndarray of int, shape (new rows, nodes, in-ports)
            Delay of each stored word, from `_find_stores`.
        blocks : list of (int, int, int, (int, int))
            The stored blocks, as `_find_stores` returns them.
        streams : bool
            True if words of a row may arrive while later rows are executed.

        Returns
        -------
        at : ndarray of int, shape (new rows,)
            Store address of each row.
        words : int
            Number of words that the memory of an in-port needs.
        """
        region = _assign_regions((late > 0).reshape(len(late), -1))
        spread = self._delay_offsets(late, streams=streams)
        least, most = int(spread[late > 0].min()), int(spread[late > 0].max())
        size = round_up_to_beats(self._loop.flits, self._beat) + most - least
        at = np.where(region >= 0, region * size - least, 0)
        for row, node, port, block in blocks:
            came = int(late[row, node, port])
            place = port, int(at[row] + spread[row, node, port])
            # First row that may read the block. With Order.FLIT a row is one slot, so the row has
            # to come after the store delay. Otherwise the next row may read it.
            by_flit = self._loop.order is Order.FLIT
            first = row + (MEMORY_AGE - PASS + came if by_flit else 1)
            self._came[node].setdefault(block, []).append((first, place))
        return at, (int(region.max()) + 1) * size

    def _delay_offsets(self, late: IntArray, *, streams: bool) -> IntArray:
        """Return the distance of each stored word from the store address of its row.

        `late` has, for each in-port and row, the number d of cycles from the row to the storing of
        its word; the result has the same shape. The distance is d - 1 addresses, because the
        address counter advances from the row on. It is 0 if words of a row may arrive while later
        rows are executed (`streams`), or if the beat is above 1.
        """
        found: IntArray = np.zeros_like(late) if streams or self._beat > 1 else late - 1
        return found

    def _choose_sources(self, found: dict[Action, IntArray], reads: IntArray) -> None:
        """Choose the input of each out-port and operator, and the reads that provide its words.

        The method writes its choices into the arrays of `found` and into `reads`. ``found[action]``
        has the shape (rows, nodes, ports), and holds the number of the selected input (source):
        of each out-port for `Action.SELECT`, of each operator for `Action.OPERAND`. `reads` has the
        shape (rows, nodes, ports, 3), with three values for each reader (read port of a node):
        memory, first address, and cycles from the row to the read.
        """
        sources, algorithm = self._loop.sources, self._program.schedule.algorithm
        numbers = np.array([stage * self._ports + k for stage, k in sources.by_number] + [IDLE])
        #: From (row, node, new reader) to the injection port of the old program.
        taken: dict[tuple[int, int, int], int] = {}
        read = [
            tuple(self._row_values(action, reader) for action in (Action.READ, Action.MEMORY))
            for (reader,) in sources.injections
        ]
        # Out-ports first, because each has to use its own reader.
        for field in (
            *self._loop.fields_of_action(Action.SELECT),
            *self._loop.fields_of_action(Action.OPERAND),
        ):
            action, port = field.point
            values = self._row_values(action, port)
            found[action][:, :, port] = numbers[values]
            injected = (values >= sources.first_injection) & (values < sources.identity)
            for row, node in np.argwhere(injected).tolist():
                injection = int(values[row, node]) - sources.first_injection
                at, late = self._read_row(row, injection, field.delay)
                base, memory = (int(each[at, node]) for each in read[injection])
                found[action][row, node, port] = IDLE
                if base >= 0 and memory != IDENTITY_MEMORY:
                    number = self._choose_reader(taken, (at, node, injection), field.point)
                    found[action][row, node, port] = Stage.INJECTION * self._ports + number
                    # Before a pause, all words of the rows before have been stored.
                    place = self._block_location(
                        node,
                        memory,
                        base + int(self._offset[at]),
                        at + late * (not self._pause[at]),
                    )
                    if place[0] == IDLE:
                        _raise_unsupported("that reads what has been written", algorithm)
                    reads[at, node, number] = *place, late

    def _read_row(self, row: int, injection: int, delay: int) -> tuple[int, int]:
        """Return the row in which a selected word is read from memory, and the delay of this read.

        The delay is the number of cycles from the row, as the sequencer presents it, to the read.

        Parameters
        ----------
        row : int
            Row in which an out-port or an operator selects the word.
        injection : int
            Number of the selected injection port: the input of the crossbar at which words from
            memories arrive.
        delay : int
            Cycles from this row to the selection.
        """
        read = self._loop.field(Action.READ, self._loop.sources.injections[injection][0])
        if read is None:
            return row, 0
        if self._loop.order is Order.FLIT:
            row = (row + delay - (SETTING - ADDRESS) - read.delay) % len(self._of)
        return row, read.delay - ADDRESS

    def _choose_reader(
        self, taken: dict[tuple[int, int, int], int], use: tuple[int, int, int], point: Point
    ) -> int:
        """Return the reader (read port of a node's memories) that provides a word in a row.

        An out-port always takes its own reader, an operator any free one. One reader may provide
        the same word to several out-ports and operators.

        Parameters
        ----------
        taken : dict of (int, int, int) to int
            The readers in use: (row, node, reader) -> injection port of the word. The method adds
            the result.
        use : tuple of (int, int, int)
            Row, node and injection port (input of the old crossbar) of the word.
        point : Point
            The out-port or operator that selects the word.
        """
        row, node, injection = use
        ports = [point.number] if point.action is Action.SELECT else range(self._ports)
        having = [k for k in ports if taken.get((row, node, k), injection) == injection]
        if not having:
            _raise_unsupported("that reads fewer words at a time", self._program.schedule.algorithm)
        # Prefer a reader that already reads this word.
        number = min(having, key=lambda k: (row, node, k) not in taken)
        taken[row, node, number] = injection
        return number

    def _block_location(self, node: int, memory: int, base: int, row: int) -> _Place:
        """Return the new location from which a node reads a block in row `row`.

        A location is (memory, first address); `memory` and `base` are the old location. The result
        is (IDLE, IDLE) if the node does not have the block by then.
        """
        if self._program.memories[memory].own:
            return self._own[node].get((memory, base), (IDLE, IDLE))
        came = self._came[node].get((memory, base), [])
        return next((place for first, place in reversed(came) if first <= row), (IDLE, IDLE))

    def _select_identities(self, select: IntArray, operand: IntArray, *, streams: bool) -> None:
        """Select the identity as second operand for words that must pass an operator unchanged.

        Such words are those that nodes pass on or store as they arrive. Why: in a fabric with
        operators every arriving word goes through an operator.

        `select` has the number of the input (source) that each out-port selects. The method writes
        into `operand`, which has the same for the second operand of each operator. The arrays have
        the shape (rows, nodes, ports). `streams` is True if a word of a row may arrive while later
        rows are executed.
        """
        passed = np.stack([(select == p).any(axis=2) for p in range(self._ports)], axis=2)
        if streams and self._loop.order is Order.FLIT:
            # A word passes through a node some slots later than it left the preceding node.
            passed = np.roll(passed, -operand_links(self._program.topology), axis=0)
        elif streams and passed.any():
            passed[:] = True
        passed |= self._kept
        if (passed & (operand >= 0)).any():
            _raise_unsupported(
                "that combines nothing of what passes", self._program.schedule.algorithm
            )
        operand[passed] = Stage.IDENTITY * self._ports

    def _received_locations(self) -> IntArray:
        """Return the location (memory, first address) of each received block in the new program.

        The shape is (nodes, blocks, 2).
        """
        mapped, layout = self._program.form.receive_map, self._program.layout
        return np.array(
            [
                [self._block_location(node, *place, AFTER_ALL_ROWS)
                 for place in self._locate_blocks(mapped, layout.recv_parts, node)]
                for node in range(self._nodes)
            ]
        )  # fmt: skip


def _assign_regions(stored: BoolArray) -> IntArray:
    """Return the number of the region in which each row stores; IDLE for rows that store nothing.

    A region is a range of addresses, the same in all memories. Two rows that store into the same
    memory of the same node get different regions. Row by row, the first possible region is taken.

    Parameters
    ----------
    stored : ndarray of bool, shape (rows, memories of all nodes)
        True if a row stores into a memory.
    """
    found, taken = np.full(len(stored), IDLE), np.zeros((0, stored.shape[1]), bool)
    for row in np.flatnonzero(stored.any(axis=1)):
        free = ~(taken & stored[row]).any(axis=1)
        if not free.any():
            taken, free = np.vstack([taken, np.zeros_like(stored[:1])]), np.append(free, True)
        found[row] = free.argmax()
        taken[found[row]] |= stored[row]
    return found
