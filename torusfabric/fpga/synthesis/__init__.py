"""Synthesis: what a fabric costs on an FPGA and how fast it runs.

Each module is synthesized once, out of context, with its children as black boxes, so the effort
does not grow with the number of nodes; the fabric's cost is the sum over its instances. Nothing
is optimised across the borders of modules, so the sum is an upper bound of what a whole build
needs. With place and route, each router class alone and, where it fits, the whole fabric are
placed and routed in a harness that takes the pins out of the question. Every router is compared
with a full crossbar of its ports, lanes, width and number of settings.
"""

import dataclasses
import shutil
import statistics
import tempfile
from pathlib import Path

from ...errors import InputError, WorkFailed
from ...toolchain import tools
from ...toolchain.cache import Cache
from ...verilog.design import RouterShape
from .flow import Flow
from .full_crossbar import full_crossbar
from .report import Report, per_bit
from .target import FAMILIES, TARGETS, Cost, find_target

__all__ = ["TARGETS", "Report", "synthesize"]


def synthesize(
    design,
    target,
    *,
    pnr=False,
    seeds=(1,),
    mapping="compact",
    progress=None,
    folder=None,
    cache=None,
    jobs=2,
):
    """Synthesize a design for a device.

    Parameters
    ----------
    design : Design
        What the Verilog side emitted.
    target : str
        A name from `TARGETS`.
    pnr : bool
        Whether to place and route as well, for clock rates.
    seeds : sequence of int
        Seeds of place and route; a clock rate is the median over them.
    mapping : str
        "compact" for few LUTs, "fast" for wide multiplexers where the device has them.
    progress : function of (int, int, str), optional
        Called after each step with the number of steps done, of all steps, and the step's name.
    folder : path, optional
        Where the tools work and leave their logs; by default a folder that is removed, except
        after a failure of a tool.
    cache : Cache, optional
        What was done before; results are kept under a digest of the text, the options and the
        versions of the tools.
    jobs : int
        How many tools may run at once.

    Returns
    -------
    Report

    Raises
    ------
    InputError
        If the target, the mapping or the seeds are not valid.
    WorkFailed
        If a tool fails.
    MissingTool
        If a tool is not installed.
    """
    device, seeds = find_target(target), list(seeds)
    _refuse(mapping, seeds)
    used = ["yosys", *([FAMILIES[device.family].pnr] if pnr else [])]
    versions = {tool: tools.version(tool) for tool in used}
    work = Path(folder or tempfile.mkdtemp(prefix="torusfabric-synth-"))
    work.mkdir(parents=True, exist_ok=True)
    flow = Flow(design, device, mapping, versions, work, Cache() if cache is None else cache)
    keep = folder is not None
    try:
        return _synthesize(flow, seeds if pnr else [], _Counter(progress), jobs)
    except WorkFailed:
        keep = True  # with the logs that tell why
        raise
    finally:
        if not keep:
            shutil.rmtree(work, ignore_errors=True)


def _refuse(mapping, seeds):
    """Refuse settings that are not valid."""
    if mapping not in ("compact", "fast"):
        raise InputError(f"Mapping must be compact or fast, not {mapping!r}")
    if not seeds or not all(isinstance(seed, int) and seed > 0 for seed in seeds):
        raise InputError(f"Seeds must be one or more positive integers, not {seeds}")


def _synthesize(flow, seeds, count, jobs):
    """Run all steps and put the report together."""
    design, device = flow.design, flow.device
    candidates = list(dict.fromkeys([name for name, _ in design.classes] + [design.top]))
    yardsticks = _full_flows(flow)
    count.steps = len(design.modules) + sum(len(f.design.modules) for f in yardsticks.values())
    count.steps += len(candidates) * (1 + len(seeds)) if seeds else 0
    mapped = _map(flow, count, jobs)
    references = {shape: _map(f, count, jobs) for shape, f in yardsticks.items()}
    totals = _totals(design, mapped)
    full = {
        shape: _totals(yardsticks[shape].design, result)["full"].luts
        for shape, result in references.items()
    }
    over = {name: device.over(totals[name]) for name in candidates}
    clocks = {name: {"fmax_mhz": None, "why": over[name]} for name in candidates}
    runs = [
        {"tool": "yosys", "what": name, "seconds": result["seconds"]}
        for results in (mapped, *references.values())
        for name, result in results.items()
    ]
    if seeds:
        count.steps -= sum(1 + len(seeds) for name in candidates if over[name])
        fitting = [name for name in candidates if not over[name]]
        clocks.update(_clocks(flow, fitting, mapped, seeds, count, jobs, runs))
    classes = [
        {
            **_class(design, name, nodes, mapped[name], totals[name], clocks[name]),
            **_saved(totals[name], full.get(design.shapes.get(name))),
        }
        for name, nodes in design.classes
    ]
    modules = _modules(design, mapped)
    fabric = _fabric(device, totals[design.top], over[design.top], clocks[design.top])
    return Report(
        target=device.name,
        mapping=flow.mapping,
        classes=classes,
        fabric=fabric | _saved_in_all(classes),
        parts=_parts(design, mapped, modules),
        modules=modules,
        seeds=seeds,
        runs=runs,
        tools=flow.versions,
    )


def _full_flows(flow):
    """How to map the full crossbar of each shape of routers: with few LUTs, to be fair."""
    flows: dict[RouterShape, Flow] = {}
    for shape in dict.fromkeys(flow.design.shapes.values()):
        folder = flow.folder / f"full-crossbar-{len(flows)}"
        folder.mkdir(exist_ok=True)
        design = full_crossbar(shape)
        flows[shape] = dataclasses.replace(flow, design=design, folder=folder, mapping="compact")
    return flows


def _map(flow, count, jobs):
    """Map all modules of a design: module -> result."""
    mapped = {}
    names = flow.design.modules
    for name, result in zip(names, tools.parallel(flow.map_module, names, jobs=jobs), strict=True):
        mapped[name] = result
        count(f"synthesized {name}")
    return mapped


class _Counter:
    """Tells the caller how far we are."""

    def __init__(self, progress):
        self._progress = progress
        self._done = 0
        self.steps = 0

    def __call__(self, text):
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, self.steps, text)


def _totals(design, mapped):
    """What each module costs with all its children and theirs."""
    totals: dict[str, Cost] = {}
    for name in design.modules:  # children come before their parents
        total = Cost(**mapped[name]["cost"])
        for child, times in design.instances.get(name, {}).items():
            if child not in totals:
                raise ValueError(f"Module {child} must come before {name}, which has it")
            total = total.plus(totals[child], times)
        totals[name] = total
    return totals


def _clocks(flow, names, mapped, seeds, count, jobs, timed):
    """Place and route modules with every seed: module -> keys of the report.

    What the tools took is added to `timed`.
    """

    def prepare(name):
        return flow.harnessed(name, mapped[name]["ports"], seeds)

    def place(run):
        return flow.place(run[0], mapped[run[0]]["ports"], run[1])

    for name, result in zip(names, tools.parallel(prepare, names, jobs=jobs), strict=True):
        timed.append({"tool": "yosys", "what": f"{name} in a harness", **_seconds(result)})
        count(f"put {name} in a harness")
    runs = [(name, seed) for name in names for seed in seeds]
    placed = {}
    for run, result in zip(runs, tools.parallel(place, runs, jobs=jobs), strict=True):
        placed[run] = result
        name, seed = run
        timed.append({"tool": flow.family.pnr, "what": name, "seed": seed, **_seconds(result)})
        count(f"placed and routed {name}, seed {seed}")
    return {name: _clock([placed[name, seed] for seed in seeds]) for name in names}


def _seconds(result):
    return {"seconds": result["seconds"]}


def _clock(results):
    """The clock rate of one module, from the results of all seeds."""
    rates = [result["mhz"] for result in results]
    good = [rate for rate in rates if rate is not None]
    logic = [result["logic_mhz"] for result in results if result["logic_mhz"] is not None]
    why = next((result["why"] for result in results if result["why"]), None)
    return {
        "fmax_mhz": round(statistics.median(good), 2) if good else None,
        "fmax_min_mhz": min(good, default=None),
        "fmax_max_mhz": max(good, default=None),
        "fmax_by_seed": rates,
        "logic_mhz": round(statistics.median(logic), 2) if logic else None,
        "placed": results[0]["placed"],
        "why": why,
    }


def _class(design, name, nodes, mapped, total, clock):
    """The report of a node class."""
    ports = mapped["outports"]
    bits = per_bit(total, ports) if name in design.outports else {"why": None}
    why = "; ".join(filter(None, (bits["why"], clock["why"])))
    parts = {"parts": ports["parts"], "least_luts": ports["limit"]} if ports["parts"] else {}
    own = {"name": name, "nodes": nodes, **total.to_json()}
    return {**own, **bits, **parts, **clock, "why": why or None}


def _saved(total, full):
    """How a router compares with the full crossbar of its shape."""
    if full is None:
        return {}
    saved = full - total.luts
    share = round(saved / full, 4) if full else 0.0
    return {"full_crossbar_luts": full, "saved_luts": saved, "saved_share": share}


def _saved_in_all(classes):
    """The same for all routers of the fabric."""
    if not classes or any("saved_luts" not in row for row in classes):
        return {}
    full = sum(row["full_crossbar_luts"] * row["nodes"] for row in classes)
    saved = sum(row["saved_luts"] * row["nodes"] for row in classes)
    share = round(saved / full, 4) if full else 0.0
    return {"full_crossbar_luts": full, "saved_luts": saved, "saved_share": share}


def _fabric(device, total, over, clock):
    """The report of the whole fabric."""
    return {
        **total.to_json(),
        "fits": over is None,
        "capacity": device.capacity,
        **clock,
    }


def _parts(design, mapped, modules):
    """LUTs of each part of the fabric; routers are split by what their tables do."""
    parts: dict[str, int] = {}
    for row in modules:
        inside = mapped[row["name"]]["outports"]["parts"]
        split = inside or {design.parts.get(row["name"], "other"): row["luts"]}
        for part, luts in split.items():
            parts[part] = parts.get(part, 0) + luts * row["instances"]
    return dict(sorted(parts.items(), key=lambda item: -item[1]))


def _modules(design, mapped):
    """The report of each module: how often it is there, and what it costs without its children."""
    times = {design.top: 1}
    for name in reversed(design.modules):  # parents come before their children
        for child, count in design.instances.get(name, {}).items():
            times[child] = times.get(child, 0) + count * times.get(name, 0)
    return [
        {"name": name, "instances": times.get(name, 0), **mapped[name]["cost"]}
        for name in design.modules
    ]
