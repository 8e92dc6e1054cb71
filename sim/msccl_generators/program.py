"""MSCCL XML, built step by step."""

from collections import defaultdict

__all__ = ["Program"]


class Program:
    """Thread blocks of an MSCCL algorithm, to which steps are added one by one.

    A step reads chunks of its GPU. It waits for the last step of another thread block of that
    GPU that wrote one of these chunks.

    Parameters
    ----------
    name, collective : str
        Attributes ``name`` and ``coll`` of the file.
    ranks : int
        Number of GPUs.
    chunks : int
        Chunks of each buffer, the attribute ``nchunksperloop``.
    in_place : bool
        Attribute ``inplace``.
    guarded : bool
        True if a step also waits for steps of other thread blocks that read, or wrote, the chunks
        that it overwrites.
    """

    def __init__(self, name, collective, ranks, chunks, *, in_place=True, guarded=False):
        self.head = (
            f'<algo name="{name}" proto="Simple" nchannels="1" nchunksperloop="{chunks}" '
            f'ngpus="{ranks}" coll="{collective}" inplace="{int(in_place)}">'
        )
        self.ranks, self.chunks = ranks, chunks
        self.blocks = defaultdict(list)
        self.writer = {}
        self.guarded, self.readers = guarded, defaultdict(set)

    def add(self, rank, peers, type_, source, target, count=1, channel=0):
        """Add a step to a thread block.

        Parameters
        ----------
        rank : int
            GPU of the thread block.
        peers : tuple of int
            Ranks that the thread block sends to and receives from, -1 for none.
        type_ : str
            Type of the step, as in the XML: ``s``, ``r``, ``rcs`` and so on.
        source, target : tuple of str and int
            Buffer and first chunk that the step reads, and that it writes.
        count : int
            Number of chunks.
        channel : int
            Channel of the thread block.
        """
        here = rank, *peers, channel
        reads = target if type_ in ("rcs",) else source
        wrote = {
            self.writer.get((rank, reads[0], reads[1] + k))
            for k in range(count * (type_ not in ("r", "rcs", "nop")))
        }
        over = [(rank, target[0], target[1] + k) for k in range(count)]
        if self.guarded and type_ not in ("s", "rrs", "nop"):
            wrote |= set().union(*map(self.readers.__getitem__, over), map(self.writer.get, over))
        waits = sorted(found for found in wrote if found is not None and found[0] != here)
        for dependence in waits[1:]:
            self.blocks[here].append(("nop", ("i", -1), ("o", -1), 0, dependence))
        step = (type_, source, target, count, waits[0] if waits else None)
        self.blocks[here].append(step)
        place = here, len(self.blocks[here]) - 1
        if type_ not in ("r", "rcs", "nop"):
            for k in range(count):
                self.readers[rank, source[0], source[1] + k].add(place)
        if type_ not in ("s", "rrs", "nop"):
            self.writer.update(dict.fromkeys(over, place))
            for location in over:
                self.readers[location] = set()

    def move(self, source, target, offset, count=1, *, add=False, buffer="o"):
        """Send chunks from a rank to the same offset of another rank, which copies or adds them."""
        at = buffer, offset
        self.add(source, (target, -1), "s", at, at, count)
        self.add(target, (-1, source), "rrc" if add else "r", at, at, count)

    def text(self):
        """Return the text of the file."""
        lines = [self.head]
        awaited = {step[4] for steps in self.blocks.values() for step in steps}
        for rank in range(self.ranks):
            size = f'i_chunks="{self.chunks}" o_chunks="{self.chunks}" s_chunks="{self.chunks}"'
            lines.append(f'  <gpu id="{rank}" {size}>')
            mine = [here for here in self.blocks if here[0] == rank]
            number = {here: place for place, here in enumerate(mine)}
            for here in mine:
                _, send, recv, channel = here
                lines.append(
                    f'    <tb id="{number[here]}" send="{send}" recv="{recv}" chan="{channel}">'
                )
                for place, (type_, source, target, count, waits) in enumerate(self.blocks[here]):
                    depid, deps = (number[waits[0]], waits[1]) if waits else (-1, -1)
                    lines.append(
                        f'      <step s="{place}" type="{type_}" srcbuf="{source[0]}" '
                        f'srcoff="{source[1]}" dstbuf="{target[0]}" dstoff="{target[1]}" '
                        f'cnt="{count}" depid="{depid}" deps="{deps}" '
                        f'hasdep="{int((here, place) in awaited)}"/>'
                    )
                lines.append("    </tb>")
            lines.append("  </gpu>")
        return "\n".join([*lines, "</algo>"]) + "\n"
