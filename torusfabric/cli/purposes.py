"""The commands, and what they are for: the help of the command line lists them by purpose."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

__all__ = ["PURPOSES", "Command"]


class Command(NamedTuple):
    """A command of the list.

    Parameters
    ----------
    module : str
        The module of this room that has its arguments and runs it, imported only for that.
    text : str
        What it does, in a few words.
    example : str
        A command line, for the help text.
    extra : str
        What brings all that it needs, if that is more than what makes hardware.
    """

    module: str
    text: str
    example: str
    extra: str = ""


#: Commands by purpose, in the order in which a newcomer meets them: of each its name, the module
#: and perhaps the extra, what it does, and an example.
COMMANDS = """
plan and look
    algorithms planning
        list the algorithms
        torusfabric algorithms --json
    plan planning
        plan and check a schedule
        torusfabric plan 6x8 allgather --algorithm hamiltonian -o plan.json
    check planning
        check a schedule file, or what is planned
        torusfabric check plan.json
    compare compare
        put all algorithms that fit side by side, for one collective or several in a fabric
        torusfabric compare 8x8 allgather --target ecp5-25k
    draw planning
        draw a schedule, as scalable vector graphics
        torusfabric draw 5x5 allgather --algorithm one-packet -o picture.svg
    animate planning
        write a page that plays a schedule step by step, for any browser
        torusfabric animate 6x6 allgather --cycles --word 0:21 -o play.html

hardware
    verilog hardware
        write the Verilog of a fabric
        torusfabric verilog 16x16 allgather --width 32 --flits 2 -o out/
    simulate simulation
        simulate a whole fabric, cycle by cycle, and compare every word
        torusfabric simulate 8x8 allgather --width 32 --flits 4
    synth hardware synthesis
        synthesize a fabric and report what it costs
        torusfabric synth 4x4 allgather --width 32 --target ecp5-25k --pnr
    image loaded
        write what makes a fabric whose tables are loaded carry out other collectives
        torusfabric image --fabric out/manifest.json 4x4 alltoall -o a.bin
    repair loaded
        plan around broken links for a fabric whose tables are loaded, and try the image
        torusfabric repair --fabric out/manifest.json --broken-link 5:+0 -o b.bin
    prove hardware prove
        prove that the Verilog of a fabric delivers what its collectives say, for all data
        torusfabric prove 8x8 alltoall

boards
    boards board boards
        list the boards, or find out what one holds
        torusfabric boards --measure icestick
    build board boards
        make a bitstream of a fabric behind a bridge for a board
        torusfabric build --board icebreaker 2x2 allgather --width 8 -o out/
    flash board boards
        make a bitstream and load it onto a board
        torusfabric flash --board ulx3s-25f 4x4 allgather --width 32
    monitor monitor boards
        watch a board run jobs that are drawn
        torusfabric monitor --board icebreaker --jobs 100
    run monitor boards
        run jobs, or data, on a board, and compare words and cycles
        torusfabric run 4x4 allreduce --port sim --job length=3
    load monitor boards
        load an image onto a board with a fabric whose tables are loaded
        torusfabric load --board icebreaker a.bin

other systems
    import foreign
        read a schedule of another system (MSCCL XML), and check it
        torusfabric import allgather.xml --topology 4x4 --map gray -o plan.json
    export foreign
        write a schedule for other systems: MSCCL XML, or a list of transfers
        torusfabric export plan.json --format msccl -o plan.xml

many fabrics
    sweep sweep
        plan, simulate and synthesize a grid of fabrics
        torusfabric sweep grid.toml -o grid.jsonl

this installation
    doctor installation
        say which tools and packages are installed, and how to get what is missing
        torusfabric doctor
    cache installation
        show or clear the cache of what external tools produced
        TORUSFABRIC_CACHE_LIMIT=500M torusfabric cache
    completion installation
        write the script by which a shell completes commands, options and names
        torusfabric completion bash > ~/.local/share/bash-completion/completions/torusfabric
"""


def _listed(text: str) -> Iterator[tuple[str, dict[str, Command]]]:
    """The commands of each purpose of a text."""
    for block in text.strip().split("\n\n"):
        purpose, *lines = map(str.strip, block.splitlines())
        commands = {}
        for head, says, example in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
            name, module, *extra = head.split()
            commands[name] = Command(module, says, example, *extra)
        yield purpose, commands


PURPOSES: Mapping[str, Mapping[str, Command]] = dict(_listed(COMMANDS))
