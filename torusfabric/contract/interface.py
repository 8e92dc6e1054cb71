"""What an adapter in front of a core says of the ports that it gives to the whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .assertions import Assertion
    from .claims import Claim
    from .ports import Port
    from .registers import RegisterMap

__all__ = ["Bench", "Interface"]


class Bench(NamedTuple):
    """The emitted bench of a top, beside the files that all benches have.

    Parameters
    ----------
    files : mapping of str to (str or path)
        The sources of further files by their names in the bench; a text is a path among the
        sources of all benches.
    top : str
        The module that is driven.
    verilog : mapping of str to str
        The texts of Verilog files of the bench itself.
    """

    files: Mapping[str, str | Path]
    top: str
    verilog: Mapping[str, str] = MappingProxyType({})


class Interface:
    """The outermost ports of a fabric, for manifest, files, bench and proof.

    An adapter says what it has; all else is empty.

    Attributes
    ----------
    registers : RegisterMap or None
        What lies at which address, if there are registers.
    ports : mapping of str to Port
        The purpose of each port, by its name; of a port of each node, without the node's number.
    delivers : str
        What a proof says that every node does with the words that a run brings it.
    drive : module or None
        The simulation of ports that engines do not know: ``draw_jobs(fabric, count, seed=..)``
        returns jobs, and ``simulate(fabric, jobs=.., seed=.., engine=.., progress=.., **choices)``
        a report.
    access : function or None
        Does runs by a host port: a generator of clock edges, as `Engine.run_many` asks for them,
        given also the memories (`Cells`), and whether all words go through the port.
    kernel : Path or None
        The C++ file of the library that drives these ports of a compiled model.
    """

    delivers = "then holds what the collective brings it where the address map says"
    drive: Any = None
    kernel: Path | None = None
    access: Any = None
    registers: RegisterMap | None = None
    ports: Mapping[str, Port] = MappingProxyType({})

    def members(self) -> Mapping[str, Any]:
        """Return members of the fabric that stand for some of its ports."""
        return {}

    def is_in_member(self, port: str) -> bool:
        """Return True if a member stands for a port."""
        del port
        return False

    def connect(self, m: Any, fabric: Any, assembly: Any) -> None:
        """Connect these members of a fabric to the ports of its assembly."""

    def facts(self) -> Mapping[str, Any]:
        """Return entries of the manifest."""
        return {}

    def files(self, top: str, title: str) -> Mapping[str, str]:
        """Return the texts of files that describe the ports, by their names.

        Parameters
        ----------
        top : str
            The name of the top module.
        title : str
            What the fabric is, in a line.
        """
        del top, title
        return {}

    def bench(self) -> Mapping[str, str | Path]:
        """Return the sources of files of the bench, as `Bench` has them."""
        return {}

    def assertions(self, ports: Mapping[str, Mapping[str, Any]]) -> Iterable[Assertion]:
        """Return what is asserted of the ports, given all ports as the manifest has them."""
        del ports
        return ()

    def harnesses(self, fabric: Any, design: Any) -> Iterable[Any]:
        """Return the harnesses by which modules of the adapter are proved in a `Design`."""
        del fabric, design
        return ()

    def claims(self, fabric: Any, text: Any) -> Iterable[Claim]:
        """Return claims about the wires and tables of the adapter in a `GateText`."""
        del fabric, text
        return ()

    def runs(self, fabric: Any, machine: Any) -> Any:
        """Return the `Runs` that a `Machine` carries out through the ports, if any."""
        del fabric, machine

    def assumptions(self) -> Iterable[str]:
        """Return what is not proved of the adapter, a sentence each."""
        return ()
