"""`synthesize`: the cost and the clock rate of a whole fabric, from its modules.

To *map* a module is to translate its Verilog into cells of the device (LUTs, flip-flops, ..). The
*children* of a module are the modules of its instances. Each module is mapped once, alone, with its
children as black boxes. The cost of the fabric is the sum over all instances, so that the effort
does not grow with the number of nodes. Nothing is optimised across modules, so that the sum is an
upper bound of a build of the whole.

All ROMs are instances of one module; the *contents* of a ROM are the words in it. Each different
contents is mapped once, with many others in one run of yosys. A router class includes the ROMs that
drive its routers. Its figures are those with the contents of the highest cost. A *setting* of a
router is one choice of an input for each out-port. Every router is compared with a full crossbar of
the same in-ports, words of the node, width and number of settings.

With place and route, each router class alone, and the whole fabric if it fits, are placed and
routed in a harness. The harness keeps pins from limiting the clock.
"""

import dataclasses
import statistics
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import InputError
from ...planning import require_result_memory
from ...toolchain import processes, tools
from ...toolchain.cache import Cache
from ...toolchain.folders import work_folder
from ...toolchain.public import public
from ...toolchain.values import parse_positive_int, require_bool
from ...verilog import Design, emit
from ...verilog.design import RouterShape
from ...verilog.module_text import AUTO, MemoryStyle
from .family import Cost, Mapping
from .flow import Flow
from .full_crossbar import full_crossbar
from .memory_choice import ALL_BLOCKS, choose_memory_rule, memory_rows
from .nextpnr import describe_path
from .report import (
    SynthesisReport,
    class_row,
    luts_by_part,
    module_rows,
    rom_rows,
    total_savings,
)
from .target import find_target
from .wrappers import WITH_ROMS, router_with_roms

if TYPE_CHECKING:
    from ...rtl.fabric import Fabric

__all__ = ["Progress", "Workplace", "synthesize"]

#: Callback with the number of steps done, the number of all steps, and the name of the last step.
Progress = Callable[[int, int, str], None]

#: Module, or name of ROM contents -> result of `Flow.map_modules` or `Flow.map_roms`.
Mapped = dict[str, dict[str, Any]]

#: Most modules and ROMs in one run of yosys.
MODULE_BATCH, ROM_BATCH = 16, 64


@dataclass(frozen=True)
class Workplace:
    """The folder, cache and number of processes of a synthesis.

    Parameters
    ----------
    folder : path, optional
        Folder in which tools run and leave their logs. The default is a temporary folder, which
        stays only if an error names a log in it.
    cache : Cache, optional
        Earlier results, under a digest of the Verilog, the options and the versions of the tools.
    jobs : int
        Most tools that run at once.
    """

    folder: str | Path | None = None
    cache: Cache | None = None
    jobs: int = 2


@public
def synthesize(
    design: "Design | Fabric",
    target: str,
    *,
    pnr: bool = False,
    seeds: int | Iterable[int] = (1,),
    mapping: str | Mapping = Mapping.COMPACT,
    progress: Progress | None = None,
    workplace: Workplace | None = None,
) -> SynthesisReport:
    """Synthesize a design for a device, and return its cost and clock rate.

    Parameters
    ----------
    design : Design or Fabric
        Emitted Verilog; or a fabric, whose Verilog is emitted first. In the latter case, on devices
        with costly LUT memories, each memory becomes block RAM or LUTs so that the fabric fits, see
        `choose_memory_rule`. The report has the choice as `SynthesisReport.ram`.
    target : str
        Name from `TARGETS`, or a family of `PARTS`.
    pnr : bool
        True for place and route, which gives clock rates.
    seeds : int or iterable of int
        Seeds of place and route, or their number. A clock rate is the median over the seeds.
    mapping : Mapping or str
        "compact" for few LUTs, "fast" for wide multiplexers where the device has them.
    progress : function of (int, int, str), optional
        Called after each step with the number of steps done, of all steps, and the step's name.
    workplace : Workplace, optional
        Folder, cache and number of processes.

    Returns
    -------
    SynthesisReport
        Costs of each router class, module and ROM, and of the whole fabric.

    Raises
    ------
    InputError
        If the target, the mapping or the seeds are invalid, or the target has no place and route.
    WorkFailed
        If a tool fails.
    MissingTool
        If a tool is not installed.

    Examples
    --------
    >>> import torusfabric as tf
    >>> fabric = tf.Fabric(tf.compile(tf.plan("2x2", "allgather")), width=8)
    >>> report = tf.synthesize(fabric, "ice40-hx8k")
    >>> report.fabric["luts"] > 100, report.fmax_mhz
    (True, None)
    """
    pnr, seeds = require_bool("Pnr", pnr), _parse_seeds(seeds)
    device = find_target(target)
    if pnr and device.device_family.pnr is None:
        raise InputError(
            "Place and route (--pnr) needs a target of a family that nextpnr knows, not "
            f"{device.name}; leave it out, or choose another target"
        )
    purpose, workplace = Mapping(mapping), workplace or Workplace()
    fabric = None if isinstance(design, Design) else design
    if fabric is not None:
        design = emit(fabric, ram=ALL_BLOCKS if device.device_family.block_shapes else AUTO)
    used = ["yosys", *([device.device_family.pnr] if pnr and device.device_family.pnr else [])]
    versions = {tool: tools.version(tool) for tool in used}
    given = workplace.folder
    with work_folder("synth") if given is None else nullcontext(Path(given)) as work:
        work.mkdir(parents=True, exist_ok=True)
        flow = Flow(design, device, purpose, versions, work, workplace.cache or Cache())
        if fabric is not None and design.ram == ALL_BLOCKS:
            ram = _fit_memories(flow, workplace.jobs)
            flow = dataclasses.replace(flow, design=emit(fabric, ram=ram))
        return _run_synthesis(flow, seeds if pnr else [], _StepRunner(progress, workplace.jobs))


def _fit_memories(flow: Flow, jobs: int) -> str:
    """Return the memory rule that suits the device best, from a design with the rule `ALL_BLOCKS`.

    `jobs` is the largest number of tools that run at once.
    """
    design, device = flow.design, flow.device
    memories = {
        (row["width"], row["depth"]): row["memories"]
        for row in memory_rows(design)
        if row["style"] == MemoryStyle.BLOCK.value
    }
    if not memories:
        return ALL_BLOCKS
    mapped = _map_modules(flow, _StepRunner(None, jobs))
    return choose_memory_rule(memories, device, _total_costs(design, mapped)[design.top])


def _parse_seeds(seeds: object) -> list[int]:
    """Return the seeds as a list; a number n stands for the seeds 1 to n."""
    if not isinstance(seeds, Iterable) or isinstance(seeds, str):
        count = parse_positive_int("Seeds", seeds)
        require_result_memory("seeds", count)
        return list(range(1, count + 1))
    each = [parse_positive_int("Seeds", seed) for seed in seeds]
    if not each:
        raise InputError("Seeds must be one or more positive integers, not none")
    return each


class _StepRunner:
    """Runner of the steps of a synthesis in parallel threads.

    It reports progress after each step, and collects the rows `SynthesisReport.runs`.

    Attributes
    ----------
    total : int
        Number of all steps, to be set by the caller.
    """

    def __init__(self, progress: Progress | None, jobs: int) -> None:
        self._progress, self._jobs = progress, jobs
        self._done = 0
        self.total = 0
        self.runs: list[dict[str, Any]] = []

    def run(
        self, function: Callable[[Any], Any], values: Sequence[Any], text: Callable[[Any], str]
    ) -> list[Any]:
        """Call a function for each value, one step each, and return the results in order.

        Parameters
        ----------
        function : function of value -> object
            Function that executes a step.
        values : sequence
            The values, one for each step.
        text : function of value -> str
            Returns the name of the finished step, for the progress.
        """
        results = []
        found = processes.map_in_threads(function, values, jobs=self._jobs)
        for value, result in zip(values, found, strict=True):
            results.append(result)
            self._done += 1
            if self._progress is not None:
                self._progress(self._done, self.total, text(value))
        return results

    def record_time(self, tool: str, what: str, seconds: float, **more: int) -> None:
        """Append a row about a run of `tool` to `SynthesisReport.runs`.

        The row has the input of the tool (`what`), the entries of `more`, and the seconds of the
        run.
        """
        self.runs.append({"tool": tool, "what": what, **more, "seconds": seconds})


def _run_synthesis(flow: Flow, seeds: list[int], steps: _StepRunner) -> SynthesisReport:
    """Synthesize all modules, place and route for each of `seeds`, and return the report.

    `flow` has the design, the device and the mapping. `steps` runs the steps and reports progress.
    """
    design, device = flow.design, flow.device
    yardsticks = _crossbar_flows(flow)
    designs = [design, *(each.design for each in yardsticks.values())]
    steps.total = sum(len(_module_batches(each)) + len(_rom_batches(each)) for each in designs)
    steps.total += (len({*design.classes, design.top}) * (1 + len(seeds))) if seeds else 0
    mapped = _map_modules(flow, steps)
    full = {shape: _total_costs(each.design, _map_modules(each, steps))["full"].luts
            for shape, each in yardsticks.items()}  # fmt: skip
    totals = _total_costs(design, mapped)
    price = lambda name: (totals[name].brams, totals[name].logic_size, totals[name].ffs)
    # Router -> input that ROMs drive -> name of the contents with the highest cost.
    dearest = {
        name: {port: max(contents, key=price) for port, contents in router.settings.items()}
        for name, router in design.classes.items()
    }
    costs = {
        name: reduce(Cost.plus, (totals[rom] for rom in roms.values()), totals[name])
        for name, roms in dearest.items()
    }
    costs[design.top] = totals[design.top]
    over = {name: device.misfit_reason(cost) for name, cost in costs.items()}
    clocks: dict[str, dict[str, Any]] = {
        name: {"fmax_mhz": None, "why": reason} for name, reason in over.items()
    }
    if seeds:
        steps.total -= sum(1 + len(seeds) for reason in over.values() if reason)
        fitting = {name: dearest.get(name, {}) for name in over if not over[name]}
        clocks |= _measure_clocks(flow, fitting, mapped, seeds, steps)
    classes = [
        class_row(
            name,
            router,
            mapped[name]["outports"],
            costs[name],
            roms=sorted({*dearest[name].values()}),
            clock=clocks[name],
            full=full.get(router.shape) if router.shape else None,
        )
        for name, router in design.classes.items()
    ]
    modules = module_rows(design, mapped)
    fits = {"fits": over[design.top] is None, "capacity": device.capacity}
    fabric = vars(totals[design.top]) | fits | clocks[design.top]
    return SynthesisReport(
        target=device.name,
        mapping=flow.mapping.value,
        interface=design.interface,
        classes=classes,
        fabric=fabric | total_savings(classes),
        parts=luts_by_part(design, mapped, modules),
        roms=rom_rows(design, mapped),
        modules=modules,
        seeds=seeds,
        runs=steps.runs,
        tools=flow.versions,
        ram=design.ram,
        memories=memory_rows(design),
    )


def _crossbar_flows(flow: Flow) -> dict[RouterShape, Flow]:
    """Return a `Flow` for each full crossbar with which routers are compared, by router shape.

    A shape is the numbers of in-ports, words, bits and settings of a router, and routers with equal
    shapes share a crossbar. The results differ from `flow` in design, folder and mapping. The
    mapping is compact. Why: the router is compared with the crossbar of the fewest LUTs. On silicon
    nothing is compared.
    """
    flows: dict[RouterShape, Flow] = {}
    for shape in dict.fromkeys(router.shape for router in flow.design.classes.values()):
        if shape is None or not flow.family.inputs:
            continue
        folder = flow.folder / f"full-crossbar-{len(flows)}"
        folder.mkdir(exist_ok=True)
        flows[shape] = dataclasses.replace(
            flow, design=full_crossbar(shape), folder=folder, mapping=Mapping.COMPACT
        )
    return flows


def _module_batches(design: Design) -> list[list[str]]:
    """Return the names of all modules of a design that are mapped, in lists of similar length.

    All modules of a list are translated into cells in one run of yosys.
    """
    names = design.counted_modules
    count = -(-len(names) // MODULE_BATCH)
    return [names[k::count] for k in range(count)]


def _rom_batches(design: Design) -> list[list[str]]:
    """Return the names of all ROM contents in a design, in lists of at most `ROM_BATCH` names.

    ROMs are instances of one module that differ in their contents, the words in them. All ROMs of a
    list are translated into cells in one run of yosys.
    """
    names = list(design.contents)
    return [names[k : k + ROM_BATCH] for k in range(0, len(names), ROM_BATCH)]


def _map_modules(flow: Flow, steps: _StepRunner) -> Mapped:
    """Map all modules of a design, and all its ROMs: translate each into cells of the device.

    `flow` has the design, and `steps` runs the steps and records their times. The result has, by
    name of the module or of the ROM contents, the dictionary that `Flow.map_modules` or
    `Flow.map_roms` returns.
    """
    modules, roms = _module_batches(flow.design), _rom_batches(flow.design)
    results = steps.run(flow.map_modules, modules, lambda batch: f"synthesized {batch[-1]}")
    results += steps.run(flow.map_roms, roms, lambda batch: f"synthesized {len(batch)} ROMs")
    mapped = dict(zip(chain(*modules, *roms), chain(*results), strict=True))
    for name, result in mapped.items():
        steps.record_time("yosys", name, result["seconds"])
    return mapped


def _total_costs(design: Design, mapped: Mapped) -> dict[str, Cost]:
    """Return the cost of each module with all modules inside of it, by name.

    The result also has the cost of a ROM with each different contents (the words in it), by name of
    the contents. `mapped` is the result of `_map_modules` for `design`, which has the cost of each
    module alone.
    """
    totals = {name: Cost(**mapped[name]["cost"]) for name in design.contents}
    for name in design.counted_modules:  # children come before their parents
        total = Cost(**mapped[name]["cost"])
        for child, times in design.children_of(name)[1].items():
            if child not in totals:
                raise ValueError(f"Module {child} must come before {name}, which has it")
            total = total.plus(totals[child], times)
        totals[name] = total
    return totals


def _measure_clocks(
    flow: Flow,
    names: dict[str, dict[str, str]],
    mapped: Mapped,
    seeds: list[int],
    steps: _StepRunner,
) -> dict[str, dict[str, Any]]:
    """Place and route modules, each with the ROMs that drive it, once for each seed.

    Parameters
    ----------
    flow : Flow
        Flow that runs the tools.
    names : dict of str to (dict of str to str)
        Module to place -> {input that a ROM drives: name of the contents}.
    mapped : dict of str to dict
        Result of `_map_modules`, which has the ports of each module.
    seeds : list of int
        Seeds of place and route.
    steps : _StepRunner
        Runner of the steps, which records their times.

    Returns
    -------
    dict of str to dict
        Module -> entries of the report about its clock rate, as from `_clock_facts`.
    """
    modules, ports = dict(flow.design.modules), {}
    instances, rom = dict(flow.design.instances), flow.design.rom_module
    placed_as = {}
    for name, roms in names.items():
        placed_as[name], ports[name] = name, mapped[name]["ports"]
        if roms:
            contents = {port: flow.design.contents[rom] for port, rom in roms.items()}
            whole = name + WITH_ROMS
            modules[whole], ports[name] = router_with_roms(name, ports[name], contents, rom)
            instances[whole] = {name: 1, rom: 1}
            placed_as[name] = whole
    design = dataclasses.replace(flow.design, modules=modules, instances=instances)
    flow = dataclasses.replace(flow, design=design)
    prepare = lambda name: flow.map_in_harness(placed_as[name], ports[name], seeds)
    place = lambda run: flow.place_and_route(placed_as[run[0]], ports[run[0]], run[1])
    wrapped = steps.run(prepare, list(names), lambda name: f"put {name} in a harness")
    for name, result in zip(names, wrapped, strict=True):
        steps.record_time("yosys", f"{name} in a harness", result["seconds"])
    runs = [(name, seed) for name in names for seed in seeds]
    results = steps.run(place, runs, lambda run: f"placed and routed {run[0]}, seed {run[1]}")
    placed: dict[str, list[dict[str, Any]]] = {}
    for (name, seed), result in zip(runs, results, strict=True):
        steps.record_time(flow.pnr_tool, name, result["seconds"], seed=seed)
        placed.setdefault(name, []).append(result)
    parts = {design.top: design.instance_parts}
    return {name: _clock_facts(found, parts.get(name, {})) for name, found in placed.items()}


def _clock_facts(results: list[dict[str, Any]], parts: dict[str, str]) -> dict[str, Any]:
    """Return the entries of the report about the clock rate of one module.

    They are, for example, ``fmax_mhz``, the median over the seeds, and ``slowest_path``. `results`
    has the result of `Flow.place_and_route` for each seed. `parts` maps names of instances to parts
    of the fabric, such as ``at_2`` to ``endpoint of node 2``, to describe the ends of the path.
    """
    rates = [result["mhz"] for result in results]
    known = [(result["mhz"], result["path"]) for result in results if result.get("path")]
    known.sort(key=lambda run: run[0])
    good = [rate for rate in rates if rate is not None]
    logic = [result["logic_mhz"] for result in results if result["logic_mhz"] is not None]
    middle = lambda rates: round(statistics.median(rates), 2) if rates else None
    return {
        "fmax_mhz": middle(good),
        "fmax_min_mhz": min(good, default=None),
        "fmax_max_mhz": max(good, default=None),
        "fmax_by_seed": rates,
        "logic_mhz": middle(logic),
        # The path of the seed with the median clock rate, the lower one of an even number.
        "slowest_path": describe_path(known[(len(known) - 1) // 2][1], parts) if known else None,
        "placed": results[0]["placed"],
        "why": next((result["why"] for result in results if result["why"]), None),
    }
