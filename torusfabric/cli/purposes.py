"""The list of all commands by purpose, with examples, and the options that help shows first."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

__all__ = ["COMMON", "GROUPS", "PURPOSES", "CommandEntry"]


class CommandEntry(NamedTuple):
    """An entry of the list of commands.

    Parameters
    ----------
    module : str
        Module of this package that adds the arguments of the command and runs it.
    text : str
        Purpose of the command, in a few words, for the help.
    examples : tuple of str
        Command lines, for the help.
    extra : str
        Extra of torusfabric that installs all packages for the command, if ``hardware`` does not.
    """

    module: str
    text: str
    examples: tuple[str, ...]
    extra: str = ""


#: Attributes of the options that most people need. The help of a command with many options shows
#: only these, and lists the groups of the others.
COMMON = frozenset({
    "algorithm", "board", "build", "bus", "data", "flits", "format", "job", "jobs", "json",
    "max_flits", "op", "output", "plan", "plot", "pnr", "port", "root", "spread", "table",
    "target", "top", "wave", "width",
})  # fmt: skip

#: For each group, the subjects of its options that help does not show first. A group of an adapter
#: has no entry; help lists its options.
GROUPS = {
    "selection": "how an algorithm is chosen; faults and latencies of links",
    "hardware": "forms of a schedule, operators, memories",
    "ports": "clocks, beats and timeouts of ports",
    "tables": "loaded tables, and their sizes",
    "runs": "data, number and faults of runs, and the engine",
    "files": "further output files, and the files that may be replaced",
    "picture": "what a picture shows",
    "cycles": "a picture of cycles, not of steps",
    "msccl": "files of MSCCL among those that are compared",
    "board": "the serial line, and the time that tools may take",
    "options": "what is printed, and further options",
}

#: Commands by purpose, in the order in which a newcomer needs them. An entry has a line with the
#: name, the module and perhaps the extra, a line with the purpose, and examples.
COMMANDS = """
plan and look
    algorithms planning
        list the algorithms
        torusfabric algorithms --json
    plan planning
        plan and check a schedule
        torusfabric plan 6x8 allgather --algorithm hamiltonian -o plan.json
        torusfabric plan 4x4 broadcast --root 5 --broken-link 0:+0
        torusfabric plan 8x8 allreduce --flits 64 --json
    check planning
        check a schedule file, or what is planned
        torusfabric check plan.json
        torusfabric check 4x4 alltoall
        torusfabric check mine.json --spread right.json
    compare compare
        put all algorithms that fit side by side, or all collectives, or several in one fabric
        torusfabric compare 8x8 allgather --target ecp5-25k
        torusfabric compare 4x4 allreduce --flits 1:1024 --plot curves.svg
        torusfabric compare 4x4 all --flits 4 --target ecp5-85k,asic
    draw planning
        draw a schedule, as scalable vector graphics
        torusfabric draw 5x5 allgather --algorithm one-packet -o picture.svg
        torusfabric draw 4x4 broadcast --moving 0 -o moving.svg
        torusfabric draw --plan plan.json --links -o links.pdf
    animate planning
        write a page that plays a schedule step by step, for any browser
        torusfabric animate 6x6 allgather --cycles --word 0:21 -o play.html
        torusfabric animate 4x4 allreduce -o play.html
        torusfabric animate --plan plan.json -o play.html

hardware
    verilog hardware
        write the Verilog of a fabric
        torusfabric verilog 16x16 allgather --width 32 --flits 2 -o out/
        torusfabric verilog 4x4 reduce,broadcast --max-flits 64 --op add,max -o out/
        torusfabric verilog 4x4 alltoall --bus axi4 --width 64 --flits 8 -o out/
    simulate simulation
        simulate a whole fabric, cycle by cycle, and compare every word
        torusfabric simulate 8x8 allgather --width 32 --flits 4
        torusfabric simulate 4x4 allreduce --max-flits 16 --jobs 5
        torusfabric simulate 3x3 alltoall --top stream --wave run.fst
    synth hardware synthesis
        synthesize a fabric and report what it costs
        torusfabric synth 4x4 allgather --width 32 --target ecp5-25k --pnr
        torusfabric synth 4x4 allreduce --max-flits 16 --target xilinx-7
        torusfabric synth 2x2 alltoall --bus wishbone --target ice40-hx8k
    image loaded
        write an image, by which a fabric with loaded tables runs other collectives
        torusfabric image --fabric out/manifest.json 4x4 alltoall -o a.bin
        torusfabric image --fabric out/manifest.json --plan plan.json -o a.bin
        torusfabric image --fabric out/manifest.json 4x4 reduce --onto a.bin -o b.bin
    repair loaded
        plan around broken links for a fabric with loaded tables, and try the image
        torusfabric repair --fabric out/manifest.json --broken-link 5:+0 -o b.bin
    prove hardware prove
        prove that the Verilog of a fabric delivers what its collectives say, for all data
        torusfabric prove 8x8 alltoall
        torusfabric prove 4x4 allreduce --max-flits 4 --width 8
        torusfabric prove --fabric out/manifest.json --image a.bin

boards
    boards board boards
        list the boards, or find out what one holds
        torusfabric boards --measure icestick
    build board boards
        make a bitstream of a fabric behind a bridge for a board
        torusfabric build --board icebreaker 2x2 allgather --width 8 -o out/
        torusfabric build --board ulx3s-25f 4x4 allreduce --max-flits 16
        torusfabric build --board colorlight-5a75b --plan plan.json --flits 4
    flash board boards
        make a bitstream and load it onto a board
        torusfabric flash --board ulx3s-25f 4x4 allgather --width 32
        torusfabric flash --board icebreaker 2x2 allgather --width 8 --dry-run
        torusfabric flash --board ulx3s-25f --plan plan.json --flits 4
    monitor monitor boards
        watch a board run random jobs
        torusfabric monitor --board icebreaker --jobs 100
        torusfabric monitor --build out/ --port /dev/ttyUSB1
        torusfabric monitor 2x2 allgather --width 8 --port sim
    run monitor boards
        run jobs, or data, on a board, and compare words and cycles
        torusfabric run 4x4 allreduce --port sim --job length=3
        torusfabric run --board icebreaker
        torusfabric run --build out/ --data words.npy -o received.npy
    load monitor boards
        load an image onto a board that holds a fabric with loaded tables
        torusfabric load --board icebreaker a.bin

other systems
    import foreign
        read a schedule of another system (MSCCL XML), and check it
        torusfabric import allgather.xml --topology 4x4 --map gray -o plan.json
    export foreign
        write a schedule for other systems: MSCCL XML, or a list of transfers
        torusfabric export plan.json --format msccl -o plan.xml
        torusfabric export 4x4 allgather -o plan.xml
        torusfabric export plan.json --format csv -o plan.csv

many fabrics
    sweep sweep
        plan, simulate and synthesize a grid of fabrics
        torusfabric sweep grid.toml -o grid.jsonl

this installation
    doctor installation
        say which tools and packages are installed, and how to get what is missing
        torusfabric doctor
    cache installation
        show or clear the cache of results of external tools
        TORUSFABRIC_CACHE_LIMIT=500M torusfabric cache
    completion installation
        write the script by which a shell completes commands, options and names
        torusfabric completion bash > ~/.local/share/bash-completion/completions/torusfabric
"""


def _parse_commands(text: str) -> Iterator[tuple[str, dict[str, CommandEntry]]]:
    """Parse the list of commands, a text such as `COMMANDS`.

    Yield pairs: a purpose, such as "boards", and its commands as a dict from the name to the entry.
    """
    for block in text.strip().split("\n\n"):
        purpose, *entries = re.split(r"\n    (?! )", block)
        commands = {}
        for head, says, *examples in (map(str.strip, entry.splitlines()) for entry in entries):
            name, module, *extra = head.split()
            commands[name] = CommandEntry(module, says, tuple(examples), *extra)
        yield purpose, commands


PURPOSES: Mapping[str, Mapping[str, CommandEntry]] = dict(_parse_commands(COMMANDS))
