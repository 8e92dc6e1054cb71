"""The tables of `docs/reference/core.md` show the cycles of a run as the hardware executes it."""

import re
from pathlib import Path

import numpy as np
import pytest
from helpers import expected_words, fabric_of, few, random_messages, simulated

from torusfabric.rtl.assembly import Assembly

TEXT = (Path(__file__).parents[2] / "docs" / "reference" / "core.md").read_text(encoding="utf-8")

#: Source of the values of inputs that a table leaves open.
rng = np.random.default_rng(1)


def example(name):
    """Return the fabric of an example, and the rows of its table."""
    before, _, after = TEXT.partition(f"<!-- test: {name} -->")
    topology, collective, flits, width = re.findall(
        r"`torusfabric verilog (\S+) (\S+) --flits (\d+) --width (\d+) --top core`", before
    )[-1]
    fabric = fabric_of(topology, collective, width=int(width), flits=int(flits), top="core")
    head, _, *rows = [
        [cell.strip().replace("`", "") for cell in line.strip("|").split("|")]
        for line in after.strip().split("\n\n")[0].splitlines()
    ]
    return fabric, [dict(zip(head, row, strict=True)) for row in rows]


def junk(width):
    """Return a random value for an input that must not matter."""
    return int(rng.integers(1 << width))


def play(fabric, rows, drive, look):
    """Run the rows of a table: set the inputs of each cycle, then compare the outputs."""
    design = Assembly(fabric.netlist)

    async def testbench(ctx):
        for number, row in enumerate(rows):
            assert int(row["cycle"]) == int(rows[0]["cycle"]) + number
            # a start during a run is ignored
            ctx.set(design.start, int(row["start"] or row["busy"] or 0))
            for port, value in drive(row).items():
                ctx.set(getattr(design, port), value)
            for port in ("busy", "done", "tx_address", "rx_enable", "rx_address"):
                if row.get(port):
                    assert ctx.get(getattr(design, port)) == int(row[port]), (row["cycle"], port)
            if row["busy"] == "1":
                assert ctx.get(design.cycles) == int(row["cycle"])
            look(row, lambda port: ctx.get(getattr(design, port)))
            await ctx.tick()

    simulated(design, testbench)
    done = next(row["cycle"] for row in rows if row["done"] == "1")
    assert int(done) == fabric.predicted_cycles


def test_streams():
    """Flits are requested, injected and received in the cycles of the table."""
    fabric, rows = example("streams")
    messages, width = random_messages(fabric, 1), fabric.width
    words = messages.reshape(fabric.nodes, -1, fabric.program.block_flits)
    arrivals, seen = fabric.address_map()["arrivals"], set()

    def drive(row):
        bits = words.shape[1] * width
        if not row["inject_N"]:
            return {f"inject_{node}": junk(bits) for node in range(fabric.nodes)}
        flit = int(row["inject_N"].removeprefix("flit "))
        return {
            f"inject_{node}": sum(int(word) << k * width for k, word in enumerate(chunks[:, flit]))
            for node, chunks in enumerate(words)
        }

    def look(row, get):
        if not row["receive_N"]:
            return
        flit, step = map(int, re.findall(r"\d+", row["receive_N"]))
        for node, ports in enumerate(arrivals):
            for port, steps in enumerate(ports):
                if steps[step - 1] is not None:
                    origin, chunk = steps[step - 1]
                    word = get(f"receive_{node}") >> port * width & (1 << width) - 1
                    assert word == words[origin, chunk, flit]
                    seen.add((node, origin, chunk, flit))

    play(fabric, rows, drive, look)
    assert len(seen) == fabric.nodes * (fabric.nodes - 1) * fabric.flits


@pytest.mark.parametrize("node", few(2, [*range(4)], tuples=True))
def test_memories(node):
    """Words are written and read in the cycles of the table."""
    fabric, rows = example("memories")
    messages, address_map = random_messages(fabric, 1), fabric.address_map()
    words, _ = expected_words(fabric.program, messages)
    ((_, sent),), ((bank, received),) = address_map["sent"][0], address_map["received"][node]
    seen = []

    def drive(row):
        word = re.search(r"\d+", row["write_address_N, write_data_N"])
        given = {f"write_enable_{k}": 0 for k in range(fabric.nodes)}
        if word:
            given["write_enable_0"] = int(row["write_enable_N"])
            given["write_address_0"] = sent + int(word[0])
            given["write_data_0"] = int(messages[0][int(word[0])])
        asked = re.search(r"\d+", row["read_address_N"])
        port = fabric.netlist.inputs
        for name, value in (
            (f"read_address_{node}", received + int(asked[0]) if asked else None),
            (f"read_bank_{node}", bank if row["read_bank_N"] else None),
        ):
            given[name] = junk(port[name]) if value is None else value
        return given

    def look(row, get):
        if row["read_data_N"]:
            word = int(row["read_data_N"].removeprefix("word "))
            assert get(f"read_data_{node}") == words[node][word]
            seen.append(word)

    play(fabric, rows, drive, look)
    assert seen == [*range(fabric.flits)]
