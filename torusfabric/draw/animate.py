"""Animations: an HTML page that plays a schedule step by step.

`animation_page` fills the template ``player/page.html`` with the trace of a program as JSON, and
with the scripts of the folder ``player``. The page is complete in itself and loads nothing.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, TypeAlias

import numpy as np

from ..analysis.cost import step_length
from ..errors import InputError
from ..program import Program
from ..program.trace import list_arrivals
from ..toolchain.quoting import fill_template, script_json, xml_text
from ..topology.boards import Boards
from .boards import with_boards
from .frame import check_size, rounds_text
from .graph_layout import layout_of

__all__ = ["animation_page"]

#: Scripts of the page. Each uses the scripts before it.
SCRIPTS = ("replay.js", "picture.js", "stages.js", "controls.js")

#: A hardware stage of a followed flit: cycle, title of the stage, node, out-port or -1, and name,
#: file and line of the code that makes the stage.
Stage: TypeAlias = tuple[int, str, int, int, str, str, int]

#: Most transfers of blocks in a page. Why: browsers become slow beyond.
MAX_BLOCKS = 1_000_000


def animation_page(
    program: Program,
    stages: Sequence[Stage] = (),
    code: Mapping[str, str] | None = None,
    boards: Boards | None = None,
) -> str:
    """Return the text of an HTML page that plays the schedule of a program.

    Parameters
    ----------
    program : Program
        A program of one schedule with a fixed root.
    stages : sequence of Stage
        Hardware stages of a flit that the page follows cycle by cycle; empty for no flit.
    code : mapping of str to str, optional
        Source code of the stages, by ``file:line``.
    boards : Boards, optional
        A partition of the torus into boards, which get frames.

    Raises
    ------
    InputError
        If there are more nodes or blocks than a page can show.
    """
    schedule, flits = program.schedule, program.flits
    topology = schedule.topology
    check_size(topology, "Animation")
    subtitle = (
        f"{rounds_text(schedule)} of {step_length(schedule)}, {schedule.switching}, "
        f"{schedule.ports} ports; "
        f"{program.cycles()} clock cycles for {flits} flit{'s' * (flits != 1)}"
    )
    title = f"{topology} {schedule.collective}, {schedule.algorithm}"
    data = _page_data(program, boards) | {
        "unit": schedule.switching.unit,
        "stages": stages,
        "code": code or {},
    }
    style, script = (
        _read_player_file("style.css"),
        '"use strict";\n' + "".join(map(_read_player_file, SCRIPTS)),
    )
    values = {
        "POLICY": xml_text(_security_policy(script, style)),
        "TITLE": xml_text(title),
        "SUBTITLE": xml_text(subtitle),
        "STYLE": style,
        "SCRIPT": script,
        "DATA": script_json(data),
    }
    return fill_template(_read_player_file("page.html"), values)


def _security_policy(script: str, style: str) -> str:
    """Return the content-security policy of the page: only this script and this style.

    Why: names in the page come from files of strangers. If a name became markup by a defect, the
    browser would still run no other script and load nothing.
    """
    hashes = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (script, style)
    )
    allowed = "script-src 'sha256-{}'; style-src 'sha256-{}'".format(*hashes)
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def _read_player_file(name: str) -> str:
    """Read the file `name` of the folder ``player``."""
    return (files("torusfabric.draw") / "player" / name).read_text(encoding="utf-8")


def _page_data(program: Program, boards: Boards | None) -> dict[str, Any]:
    """Return the data of the page as JSON values: nodes, links, blocks and rounds, by name.

    The network and the schedule are those of `program`. With `boards`, each board gets a frame.
    """
    schedule, topology = program.schedule, program.topology
    layout = layout_of(topology, root=schedule.collective.root or 0)
    if boards is not None:
        layout = with_boards(layout, boards)
    steps, back = layout.link_end_directions
    if layout.steps.shape[1] == 1 and steps.shape[1] == topology.ports:
        steps = steps[:1]  # equal at all nodes
    blocks = _block_rows(program)
    start: list[list[int]] = [[] for _ in range(topology.nodes)]
    needed = program.blocks.required_copies(np.arange(program.blocks.n_blocks))[1]
    is_needed = np.isin(np.arange(len(blocks)) % program.blocks.n_blocks, needed).tolist()
    for block, (origin, *_) in enumerate(blocks):
        if is_needed[block]:
            start[origin].append(block)
    rounds, cycles = _round_transfers(program)
    sizes = program.blocks.groups.sizes[: program.blocks.numbered_groups]
    return {
        "nodes": np.round(layout.positions.T, 4).tolist(),
        "relays": list(topology.relays),
        "names": [topology.node_name(node) for node in range(topology.nodes)],
        "steps": np.round(steps, 4).tolist(),
        "near": topology.neighbours.tolist(),
        "opposite": back.tolist(),
        "joined": layout.is_line.astype(int).tolist(),
        "box": layout.bounding_box.tolist(),
        "regions": [(region.corners.T.tolist(), region.fill) for region in layout.regions],
        "captions": layout.captions,
        "blocks": blocks,
        "chunks": schedule.chunks,
        "things": "contributions" if schedule.collective.reducing else "blocks",
        # Contributions in a complete sum of each listed group; empty if nothing is summed.
        "whole": sizes.tolist() if schedule.collective.reducing else [],
        "start": start,
        "rounds": rounds,
        "cycles": cycles,
    }


def _block_rows(program: Program) -> list[list[int]]:
    """Return [origin, destination, chunk, listed group] for each block of a program.

    If the collective runs in sub-tori, the blocks of a sub-torus follow each other. The destination
    is -1 in collectives in which an origin has one message for all nodes.
    """
    blocks = program.blocks
    ids = np.arange(blocks.n_blocks)
    origin = blocks.nodes_at(blocks.origin(ids), ids)
    destination = np.full_like(origin, -1)
    if blocks.collective.personal:
        goal = blocks.postcondition(ids)
        there = np.tile(goal >= 0, blocks.copies_per_block)
        destination = np.where(there, blocks.nodes_at(np.maximum(goal, 0), ids), -1)
    chunk, group = (
        np.tile(column, blocks.copies_per_block)
        for column in (blocks.chunk(ids), blocks.group_of_block(ids))
    )
    rows: list[list[int]] = np.stack([origin, destination, chunk, group], axis=-1).tolist()
    return rows


def _round_transfers(program: Program) -> tuple[list[list[Any]], list[int]]:
    """Return the transfers of each round, and the cycle at which each round ends.

    Returns
    -------
    rounds : list of list
        For each round its transfers, each as (first node, out-ports, numbers of blocks).
    cycles : list of int
        For each round the cycle in which its last flit has arrived.
    """
    moved, blocks = 0, program.blocks
    rounds: list[list[Any]] = [[] for _ in range(program.schedule.round_count)]
    cycles = [0] * len(rounds)
    for arrival in list_arrivals(program):
        moved += len(arrival.blocks)
        if moved > MAX_BLOCKS:
            raise InputError(
                f"An animation moves at most {MAX_BLOCKS} blocks, but this schedule moves more; "
                "choose a smaller network or fewer chunks"
            )
        k = arrival.round - 1
        first = blocks.copy_at(arrival.path[0]) * blocks.n_blocks
        carried = [first + block for block in arrival.blocks]
        rounds[k].append((arrival.path[0], arrival.hops, carried))
        cycles[k] = max(cycles[k], arrival.cycle + (arrival.flits - 1) * arrival.stride)
    return rounds, cycles
