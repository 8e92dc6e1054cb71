"""Runs of the emitted Verilog of cores in Icarus, by their manifests and address maps alone.

Several cores are parts of one design and run side by side. A module around each core drives its
ports in cycles as the manifest counts them: cycle c follows edge c, and edge 0 takes the start
pulse. An input is unknown (x) in all cycles in which it must not matter: a word of a stream except
in its own cycle, a bank except in its own cycle.
"""

import json
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

__all__ = ["Core", "run_cores"]


class Core(NamedTuple):
    """A core to run.

    Parameters
    ----------
    manifest, address_map : dict
        Files of the core, as Python values.
    files : list of Path
        Verilog of the core.
    messages : list of (list of int)
        Words that each node sends, part by part.
    """

    manifest: dict
    address_map: dict
    files: list[Path]
    messages: list

    @classmethod
    def of(cls, folder, messages):
        """Return the core in a folder."""
        folder = Path(folder)
        manifest = json.loads((folder / "manifest.json").read_text())
        name = (manifest.get("streams") or manifest["memories"])["address_map"]
        assert name in manifest["files"]
        address_map = json.loads((folder / name).read_text())
        files = [folder / name for name in manifest["files"] if name.endswith(".v")]
        return cls(manifest, address_map, files, messages.tolist())

    @property
    def form(self):
        """Entry of the manifest for streams or for memories."""
        return self.manifest.get("streams") or self.manifest["memories"]

    def word(self, node, part, chunk, flit):
        """Return a word that a node sends, in Verilog; padding is unknown."""
        width, number = self.manifest["width"], self.number(chunk, flit)
        if number is None:
            return f"{{{width}{{1'bx}}}}"
        return f"{width}'d{self.messages[node][part * self.form['part_flits'] + number]}"

    def number(self, chunk, flit):
        """Return the number of a flit in its part; None beyond the end of the part."""
        number = chunk * self.form["block_flits"] + flit
        return number if number < self.form["part_flits"] else None


def run_cores(cores):
    """Run several cores in one simulation.

    Returns
    -------
    list of dict
        For each core, the words that arrive or are read, by (node, part, flit of the part).
    """
    benches = [_stream_bench if "streams" in core.manifest else _memory_bench for core in cores]
    texts = [
        bench(core, f"bench_{k}")
        for k, (bench, core) in enumerate(zip(benches, cores, strict=True))
    ]
    instances = "".join(f"  bench_{k} bench_{k}(clk, over[{k}]);\n" for k in range(len(cores)))
    texts.append(
        f"module clock;\n  reg clk = 0;\n  wire [{len(cores) - 1}:0] over;\n{instances}"
        "  always #5 clk = !clk;\n  initial begin wait (&over); $finish; end\n"
        '  initial begin #100000 $display("LATE"); $finish; end\nendmodule\n'
    )
    with tempfile.TemporaryDirectory(prefix="cores-") as work:
        Path(work, "bench.v").write_text("\n".join(texts))
        sources = [str(path) for core in cores for path in core.files]
        _call(["iverilog", "-g2005", "-Wall", "-s", "clock", "-o", "bench.vvp", *sources,
               "bench.v"], work)  # fmt: skip
        lines = [line.split() for line in _call(["vvp", "-n", "bench.vvp"], work).splitlines()]
    results: list[dict] = []
    assert all(words[0].startswith("bench_") for words in lines), lines
    for k, core in enumerate(cores):
        mine = [words[1:] for words in lines if words[:1] == [f"bench_{k}"]]
        ends = [int(words[1]) for words in mine if words[0] == "DONE"]
        assert ends == [core.manifest["predicted_cycles"]], ends
        reader = _stream_words if "streams" in core.manifest else _memory_words
        results.append(reader(core, [words for words in mine if words[0] == "WORD"]))
    return results


def _call(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr, done.stderr
    return done.stdout


def _declared(core, name):
    """Return the head of a bench: a register or wire for each port, and the core."""
    ports = core.manifest["ports"]
    lines = [f"module {name}(input clk, output reg over);", "  integer cycle;"]
    for port, said in ports.items():
        if port != "clk":
            kind = "reg" if said["direction"] == "input" else "wire"
            lines.append(f"  {kind} [{said['width'] - 1}:0] {port};")
    # The ports are in the order of the manifest.
    lines.append(f"  {core.manifest['top']} core ({', '.join(ports)});")
    lines.append("  always @(posedge clk) cycle <= start ? 0 : cycle + 1;")
    lines.append("  initial begin over = 0; rst = 1; start = 0; cycle = -1000;")
    return lines


#: Verilog that pulses `start`, waits for `done`, and checks `busy` and `cycles`.
_RUN = """\
    start = 1;
    @(negedge clk);
    start = 0;
    while (done !== 1'b1) begin
      if (busy !== 1'b1) $display("%m is not busy in cycle %0d", cycle);
      @(negedge clk);
    end
    if (cycles != cycle || busy) $display("%m says %0d cycles", cycles);
"""


def _stream_bench(core, name):
    """Return a bench that feeds streams and prints arriving words."""
    streams, nodes = core.manifest["streams"], range(core.manifest["nodes"])
    width, steps, flits = core.manifest["width"], streams["steps"], streams["block_flits"]
    lines = [*_declared(core, name), "    repeat (3) @(negedge clk);", "    rst = 0;", _RUN]
    lines.append(f'    $display("{name} DONE %0d", cycle);')
    lines.append("    over = 1;\n  end")
    lines.append("  always @(negedge clk) begin")
    lines.append("    if (rx_enable === 1'b1) begin")
    lines += [
        f'      $display("{name} WORD %0d %0d {n} %h", cycle, rx_address, receive_{n});'
        for n in nodes
    ]
    lines.append("    end")
    for node in nodes:
        lines.append(f"    inject_{node} = {{{width * len(streams['inject'])}{{1'bx}}}};")
    for flit in range(flits):
        lines.append(f"    if (cycle == {streams['tx_address_cycle'] + flit * steps})")
        lines.append(f'      if (tx_address !== {flit}) $display("%m asks for %0d", tx_address);')
        lines.append(f"    if (cycle == {streams['inject_cycle'] + flit * steps}) begin")
        for node in nodes:
            chunks = reversed(streams["inject"])  # the most significant word first
            words = [core.word(node, 0, chunk, flit) for chunk in chunks]
            lines.append(f"      inject_{node} = {{{', '.join(words)}}};")
        lines.append("    end")
    return "\n".join([*lines, "  end", "endmodule\n"])


def _stream_words(core, shown):
    """Return the words by (node, origin, flit of the message); check the cycle of each arrival."""
    streams, width = core.manifest["streams"], core.manifest["width"]
    found = {}
    for _, cycle, address, node, digits in shown:
        assert int(cycle) == streams["receive_cycle"] + int(address)
        flit, step = divmod(int(address), streams["steps"])
        for port, _ in enumerate(streams["receive"]):
            entry = core.address_map["arrivals"][int(node)][port][step]
            number = None if entry is None else core.number(entry[1], flit)
            if number is not None:
                # A word that is padding, or arrives a second time, may be unknown.
                word = int(digits.replace("x", "0"), 16) >> port * width & (1 << width) - 1
                found[int(node), entry[0], number] = word
    return found


def _memory_bench(core, name):
    """Return a bench that writes all messages, runs, and reads all received words."""
    memories, sent = core.manifest["memories"], core.address_map["sent"]
    flits, ports = memories["block_flits"], core.manifest["ports"]
    lines = _declared(core, name)
    lines += [f"    write_enable_{node} = 0;" for node in range(len(sent))]
    lines += ["    repeat (3) @(negedge clk);", "    rst = 0;"]
    for k in range(len(sent[0]) * flits):
        part, chunk = divmod(k // flits, memories["part_chunks"])
        for node, blocks in enumerate(sent):
            bank, first = blocks[k // flits]
            if f"write_bank_{node}" in ports:
                lines.append(f"    write_bank_{node} = {bank};")
            lines.append(f"    write_address_{node} = {first + k % flits};")
            lines.append(f"    write_data_{node} = {core.word(node, part, chunk, k % flits)};")
            lines.append(f"    write_enable_{node} = 1;")
        lines.append("    @(negedge clk);")
    lines += [f"    write_enable_{node} = 0;" for node in range(len(sent))]
    lines += [_RUN, f'    $display("{name} DONE %0d", cycle);', *_reads(core, name)]
    return "\n".join([*lines, "    over = 1;\n  end\nendmodule\n"])


#: Value of an address or a bank in cycles in which it must not matter.
UNKNOWN = "{32{1'bx}}"


def _reads(core, name):
    """Yield lines of Verilog that read all words, one address a cycle."""
    memories, received = core.manifest["memories"], core.address_map["received"]
    delay, latency = memories["read_bank_delay"], memories["read_latency"]
    flits = memories["block_flits"]
    count = len(received[0]) * flits
    for k in range(count + latency):
        for node, blocks in enumerate(received):
            # Cycle k has the address of word k, and the bank and the data of earlier words.
            now, asked, there = (
                blocks[number // flits] if 0 <= number < count else None
                for number in (k, k - delay, k - latency)
            )
            address = now[1] + k % flits if now else UNKNOWN
            yield f"    read_address_{node} = {address};"
            yield f"    read_bank_{node} = {asked[0] if asked else UNKNOWN};"
            if there:
                yield f'    $display("{name} WORD {node} {k - latency} %h", read_data_{node});'
        yield "    @(negedge clk);"


def _memory_words(core, shown):
    """Return the words that were read, by (node, part, flit of the part)."""
    memories = core.manifest["memories"]
    found = {}
    for _, node, k, digits in shown:
        block, flit = divmod(int(k), memories["block_flits"])
        part, chunk = divmod(block, memories["part_chunks"])
        number = core.number(chunk, flit)
        if number is not None:
            found[int(node), part, number] = int(digits, 16)
    return found
