"""Files for the tools of vendors beside the text: projects, constraints, and IP-XACT."""

from collections.abc import Mapping
from typing import Any

from ...schedule.model import Choice
from .ip_xact import COMPONENT, component
from .quartus import QUARTUS, quartus_files
from .vivado import VIVADO, vivado_files

__all__ = ["Flow", "flow_files", "flow_names"]


class Flow(Choice):
    """The tools of a vendor."""

    VIVADO = "vivado"
    QUARTUS = "quartus"


_NAMES = {Flow.VIVADO: VIVADO, Flow.QUARTUS: QUARTUS}
_FILES = {Flow.VIVADO: vivado_files, Flow.QUARTUS: quartus_files}


def flow_names(flow: Flow) -> list[str]:
    """The names of all files for a flow."""
    return [COMPONENT, *_NAMES[flow]]


def flow_files(flow: Flow, manifest: Mapping[str, Any], title: str) -> dict[str, str]:
    """The texts of all files for a flow, by their names.

    Parameters
    ----------
    manifest : mapping
        Of the fabric.
    title : str
        What the fabric is, in a line.
    """
    return {COMPONENT: component(manifest, title)} | _FILES[flow](manifest)
