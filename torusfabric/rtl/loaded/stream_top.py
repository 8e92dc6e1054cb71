# amaranth: UnusedElaboratable=no
"""The top of a fabric with streams whose tables are loaded."""

from __future__ import annotations

from functools import partial

import numpy as np

from ..arrays import Slice
from ..netlist import Part, Parts, Role
from ..node_parts import endpoint_settings
from ..streams import nodes
from ..streams.endpoint import AT_ONCE, StreamEnds, sectioned
from ..streams.ports import Clocks
from ..streams.readiness import add_tree
from ..tops import Built
from .stream_commands import LoadedCommands
from .stream_ends import (
    LoadedLoader,
    LoadedStreamEndpoint,
    LoadedUnloader,
    NodeFacts,
    loader_shape,
    unloader_shape,
)
from .top import LoadedBuilder

__all__ = ["add_loaded_stream_top"]

#: What nodes look up of runs, by the inputs that ends have for it.
LOOKED_UP = {"load_valid": "known", "load_facts": "load_facts", "unload_facts": "unload_facts",
             "row": "unload_row"}  # fmt: skip


def add_loaded_stream_top(build: LoadedBuilder, digest: int, clocks: Clocks, timeout: int) -> Built:
    """Every node has streams, and those of commands take what is loaded."""
    layout, frame, width = build.layout, build.frame, build.width
    ends = StreamEnds(
        loader_shape(layout, width),
        unloader_shape(layout, width, late=frame.ports + 1 > AT_ONCE),
        own=(frame.ports,),
    )

    def add_control() -> None:
        words: dict[str, Parts] = {
            name: (Part(name, 0, bits),)
            for name, bits in {"load_we": 1, "load_first": 1, "load_data": 32}.items()
        }
        commands = partial(LoadedCommands, layout, build.choices)
        nodes.add_control(build, ends, commands, renamed={"load_valid": "message_valid"})
        given = build.add_loader("image_loader", digest, words)
        given |= {**build.add_single_tables(given), **nodes.OVER}
        build.add_loaded_sequencer(given, soon=nodes.SOON, renamed=nodes.RENAMED)
        for name in ("loaded", "loaded_program", "modes"):
            build.add_output(name, build.nets[name])

    return nodes.add_around(build, clocks, timeout, add_control, partial(_add_nodes, ends=ends))


def _add_nodes(build: LoadedBuilder, inner: str, ends: StreamEnds) -> None:
    """Add what nodes look up, loaders, unloaders and endpoints, and the tree."""
    layout, every = build.layout, np.arange(build.nodes)
    near = build.distribution.near_each
    facts = NodeFacts(layout)
    members = facts.signature.members
    build.add_module("node_facts", partial(NodeFacts, layout), role=Role.STREAM)
    inputs = {name: (near(name, every),) for name in ("load_mode", "run_begins", "clear")}
    inputs["load_valid"] = (near("message_valid", every),)
    row = (Slice("facts_row_{}", every, 0, members["facts_row"].shape),)
    outputs = {name: (f"{name}_{{}}", members[name].shape)
               for name in ("entry", "known", "load_facts", "unload_facts")}  # fmt: skip
    build.add_array("node_facts_at_{}", "node_facts", every, inputs=inputs | {"facts_row": row},
                    outputs=outputs)  # fmt: skip
    settings = endpoint_settings(build)
    late, links = build.frame.late, build.frame.topology.longest_link
    shape = sectioned(layout.of_node.shape)
    endpoint = partial(LoadedStreamEndpoint, shape, settings, ends, kept=True,
                       late=late, links=links)  # fmt: skip
    with build.together():
        for make in (
            partial(LoadedLoader, ends.loader, layout),
            partial(LoadedUnloader, ends.unloader, layout),
        ):
            needed = make().signature.members
            given = {name: (Slice(f"{net}_{{}}", every, 0, needed[name].shape),)
                     for name, net in LOOKED_UP.items() if name in needed}  # fmt: skip
            nodes.add_ends(build, make, given, inner)
        nodes.add_endpoints(build, 0, endpoint, every, inner)
    add_tree(build, ends.loader.length_bits, some=True, rests=True)
