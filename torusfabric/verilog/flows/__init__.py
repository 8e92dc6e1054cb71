"""Files for the tools of vendors beside the text: projects, constraints, and IP-XACT."""

from collections.abc import Mapping
from typing import Any

from ...rtl.netlist import Netlist
from ...schedule.model import Choice
from ...topology import Topology
from .ip_xact import COMPONENT, component
from .quartus import QUARTUS, quartus_files
from .regions import REGIONS, cells_of_nodes, vivado_regions
from .vivado import VIVADO, vivado_files

__all__ = ["Flow", "flow_files", "flow_names"]


class Flow(Choice):
    """The tools of a vendor."""

    VIVADO = "vivado"
    QUARTUS = "quartus"


_NAMES = {Flow.VIVADO: (*VIVADO, REGIONS), Flow.QUARTUS: QUARTUS}
_FILES = {Flow.VIVADO: vivado_files, Flow.QUARTUS: quartus_files}


def flow_names(flow: Flow) -> list[str]:
    """The names of all files for a flow."""
    return [COMPONENT, *_NAMES[flow]]


def flow_files(
    flow: Flow, manifest: Mapping[str, Any], title: str, *, netlist: Netlist, topology: Topology
) -> dict[str, str]:
    """The texts of all files for a flow, by their names.

    Parameters
    ----------
    manifest : mapping
        Of the fabric.
    title : str
        What the fabric is, in a line.
    """
    texts = {COMPONENT: component(manifest, title)} | _FILES[flow](manifest)
    if flow is Flow.VIVADO:
        texts[REGIONS] = vivado_regions(topology, cells_of_nodes(netlist))
    return texts
