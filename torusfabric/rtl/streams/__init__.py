"""Fabrics whose nodes have streams: one of what a node sends, and one of what it receives.

`ports` says which ports such a fabric has, from the program and the width alone; the netlist, the
manifest and benches agree on them.
"""

from .ports import StreamPort, needs_commands, stream_ports

__all__ = ["StreamPort", "needs_commands", "stream_ports"]
