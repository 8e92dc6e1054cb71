"""Routers alone: how fast they run without endpoints, host port and sequencer."""

from dataclasses import replace

from ...rtl.fabric import Fabric
from ...rtl.netlist import Fixed, Netlist, Part, Role
from .compiled import OUTPUTS, Session, kept_texts
from .host_port import CTask, Step
from .model import build_model
from .model_objects import INPUTS

__all__ = ["Routers", "router_netlist"]


def router_netlist(netlist: Netlist) -> Netlist:
    """The routers of a fabric, the ROMs in front of them, and the links between them.

    All else they read is an input.

    Parameters
    ----------
    netlist : Netlist

    Returns
    -------
    Netlist
    """
    routers = list(netlist.having(Role.ROUTER))
    drivers = netlist.drivers()
    parts = [part for router in routers for parts in router.inputs.values() for part in parts]
    roms = {
        drivers[part.net][0] for part in parts if isinstance(part, Part) and part.net in drivers
    }
    routers += [instance for k, instance in enumerate(netlist.instances)
                if k in roms and instance.role is Role.ROM]  # fmt: skip
    parts = [part for router in routers for parts in router.inputs.values() for part in parts]
    sent = {net for router in routers for net in router.outputs.values()}
    read = [part.net for part in parts if not isinstance(part, Fixed)]
    inputs = [net for net in dict.fromkeys([*INPUTS, *OUTPUTS, *read]) if net not in sent]
    used = {router.module for router in routers}
    return replace(
        netlist,
        inputs={net: netlist.nets[net] for net in inputs},
        modules={name: netlist.modules[name] for name in netlist.modules if name in used},
        roles=netlist.roles,
        nets={net: netlist.nets[net] for net in [*inputs, *sorted(sent)]},
        outputs={},
        node_ports={},
        instances=tuple(routers),
        wired={},
    )


class Routers:
    """Compiled routers, to find out how fast they run.

    Parameters
    ----------
    fabric : Fabric
    optimize : int
        How hard the compiler tries, 0 to 3.

    Raises
    ------
    MissingTool
        If there is no C++ compiler.
    """

    def __init__(self, fabric: Fabric, *, optimize: int = 2) -> None:
        self._fabric, netlist = fabric, router_netlist(fabric.netlist)
        self._model = build_model(netlist, kept_texts(netlist), optimize=optimize)

    def measure(self, runs: int) -> tuple[int, float]:
        """Forward whatever there is, as long as so many collectives take.

        Parameters
        ----------
        runs : int

        Returns
        -------
        cycles : int
        seconds : float
            Of processor time.
        """
        task = CTask(step=Step.RUN, patience=runs * self._fabric.predicted_cycles)
        with Session(self._model, self._fabric, gated=True, vcd=None) as session:
            # Busy, and never done: it ends when it has been waited for long enough.
            session.inputs["busy"][0] = 1
            session.run(task)
        return task.edges, task.nanoseconds / 1e9
