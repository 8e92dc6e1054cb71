"""The only module that uses private names and attributes of Amaranth.

Its users are the writer of Verilog, the compiled engine and the lists of memories. Amaranth may
change private names in any release. The test ``rtl_tests/rtl/test_amaranth_private.py`` looks for
each of them, and says which module of this package needs it.

- `ast` has the classes of statements and values, and `nir` the cells of Amaranth's netlist.
- `describe_memory` and `assigned_signals` read private attributes of memories and statements.
- `make_netlist` returns Amaranth's netlist of a design.
- `no_inferred_names` makes signals without the names that Amaranth would infer.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from amaranth import tracer
from amaranth.hdl import Elaboratable, Fragment, Signal, Value
from amaranth.hdl import _ast as ast
from amaranth.hdl import _nir as nir
from amaranth.hdl._ir import PortDirection, _emit_netlist
from amaranth.hdl._mem import MemoryInstance

__all__ = ["MemoryDescription", "MemoryInstance", "MemoryPortDescription", "assigned_signals",
           "ast", "describe_memory", "make_netlist", "nir", "no_inferred_names",
           "tracer"]  # fmt: skip

# ruff: noqa: SLF001  Amaranth has no public way to these attributes.


class MemoryPortDescription(NamedTuple):
    """A port of an Amaranth memory, read from private attributes.

    A read port forwards words that the write ports in `transparent` store in the same cycle.
    """

    domain: str
    address: Value
    data: Value
    enable: Value
    transparent: tuple[int, ...] = ()


class MemoryDescription(NamedTuple):
    """An Amaranth memory, read from private attributes: size, initial words, ports, attributes."""

    name: str
    width: int
    depth: int
    rows: tuple[int, ...]
    attributes: Mapping[str, Any]
    reads: list[MemoryPortDescription]
    writes: list[MemoryPortDescription]


def describe_memory(memory: MemoryInstance) -> MemoryDescription:
    """Return the size, initial words and ports of a memory, from Amaranth's private attributes."""
    data = memory._data
    reads = [MemoryPortDescription(p._domain, p._addr, p._data, p._en, p._transparent_for)
             for p in memory._read_ports]  # fmt: skip
    writes = [
        MemoryPortDescription(p._domain, p._addr, p._data, p._en) for p in memory._write_ports
    ]
    rows = tuple(data.init)
    return MemoryDescription(data.name, data.shape, data.depth, rows, memory._attrs, reads, writes)


def assigned_signals(target: ast.Statement | Value) -> list[Signal]:
    """Return the signals that are driven by a statement, or by an assignment to `target`."""
    return list(target._lhs_signals())


def make_netlist(
    design: Elaboratable, inputs: Mapping[str, Value], outputs: Mapping[str, Value]
) -> nir.Netlist:
    """Return Amaranth's netlist of a design, with the given signals as its ports.

    Later passes of Amaranth are skipped: nets have no names, and it is not computed which nets
    enter and leave each module.

    Parameters
    ----------
    design : Elaboratable
        The module that becomes ``top`` in the netlist.
    inputs, outputs : mapping of str to Value
        The signal of each port, by the name of the port.
    """
    ports = {name: (value, PortDirection.Input) for name, value in inputs.items()}
    ports |= {name: (value, PortDirection.Output) for name, value in outputs.items()}
    netlist = nir.Netlist()
    _emit_netlist(netlist, Fragment.get(design, None).prepare(ports=ports, hierarchy=("top",)))
    netlist.resolve_all_nets()
    return netlist


#: The blocks of `no_inferred_names` that are open, of all threads, and the lock of this list.
_open_blocks: list[object] = []
_open_blocks_lock = threading.Lock()
_infer_name = tracer.get_var_name


def _name_or_default(depth: int = 2, **options: Any) -> Any:
    """Return the default name that the caller passes, or else the name that Amaranth infers.

    It replaces Amaranth's `get_var_name` while `no_inferred_names` is active. `depth` is the number
    of stack frames from this function to the code with the variable.
    """
    return options["default"] if "default" in options else _infer_name(depth + 1)


@contextlib.contextmanager
def no_inferred_names() -> Iterator[None]:
    """Let Amaranth infer no names in a ``with`` block: new signals have a given name or none.

    The block affects all threads. It ends when the last thread has left its block.

    Why: Amaranth infers names of variables from bytecode, which works in some versions of Python
    only. Tools that place a design depend on its names, so results would differ by version.
    """
    mark = object()
    with _open_blocks_lock:
        _open_blocks.append(mark)
        tracer.get_var_name = _name_or_default
    try:
        yield
    finally:
        with _open_blocks_lock:
            _open_blocks.remove(mark)
            if not _open_blocks:
                tracer.get_var_name = _infer_name
