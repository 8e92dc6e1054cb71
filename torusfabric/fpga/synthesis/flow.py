"""`Flow`: runs of yosys and nextpnr on one module at a time, with cached results.

The user is `synthesize`. To *map* a module is to translate its Verilog into cells of the device,
such as LUTs. The *children* of a module are the modules of its instances; the *contents* of a ROM
are the words in it. A key of the cache covers the Verilog, the options and the versions of the
tools, so that a module that did not change is not mapped again.
"""

import functools
import json
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import WorkFailed
from ...toolchain import tools
from ...toolchain.cache import Cache, digest
from ...toolchain.files import write_text_file
from ...verilog.design import Design
from .family import Cost, Family, Mapping
from .lut_purposes import count_luts_by_purpose
from .nextpnr import PLACEMENT_FAILURE, PlacerWatch, logic_mhz, slowest_path, utilisation
from .target import PINS, Target
from .wrappers import HARNESS, ROMS_TOP, Ports, harness_text, roms_text

__all__ = ["Flow", "load_json"]

#: Version of cached values; it increases when their form or meaning changes.
_FORMAT = 5

#: The declaration of a memory in Verilog, an array of words.
_MEMORY = re.compile(r"^ *reg .*\[\d+:\d+\];", re.MULTILINE)

#: Name of a module with an instance of each module that a run maps.
_MODULES_TOP = "all_modules"


@dataclass(frozen=True)
class Flow:
    """The steps of the synthesis of a design, each a run of a tool; steps can run in parallel.

    Parameters
    ----------
    versions : dict of str to str
        Tool -> version, for the keys of the cache.
    folder : Path
        Folder for inputs, outputs and logs of the tools.
    """

    design: Design
    device: Target
    mapping: Mapping
    versions: dict[str, str]
    folder: Path
    cache: Cache

    @property
    def family(self) -> Family:
        """Family of the device."""
        return self.device.device_family

    def map_modules(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """Map modules: translate their Verilog into cells of the device, such as LUTs.

        All modules without a cached result are mapped in one run of yosys, because each run reads
        the libraries of the family. The modules of their instances are black boxes, whose cells are
        not included.

        Parameters
        ----------
        names : sequence of str
            Names of the modules.

        Returns
        -------
        list of dict
            For each module: ``cost`` has the fields of `Cost`, ``ports`` the direction and width of
            each port, ``outports`` the result of `count_luts_by_purpose`, and ``seconds`` its share
            of the time.
        """
        design, synth = self.design, self._yosys_script(_MODULES_TOP)
        inner, children, keys = dict[str, set[str]](), dict[str, list[str]](), dict[str, str]()
        purposes = {name: self._port_purposes(name) for name in names}
        for name in names:
            inner[name], others = design.children_of(name)
            children[name] = sorted({self._module_of(child) for child in others})
            texts = [design.modules[each] for each in (*sorted(inner[name]), name)]
            texts += [design.modules[child] for child in children[name]]
            keys[name] = self._cache_key("map", synth, name, texts, purposes[name])
        known = {name: self.cache.get(key) for name, key in keys.items()}
        unknown = [name for name in names if known[name] is None]
        if unknown:
            own = {each for name in unknown for each in (*inner[name], name)}
            stubs = {child for name in unknown for child in children[name]} - own
            escaped = [f"{_escape_name(name)} " for name in unknown]
            text = "\n".join(
                [*(text for name, text in design.modules.items() if name in own)]
                + [f"module {_MODULES_TOP};"]
                + [f"  (* keep *) {name}instance_{k} ();" for k, name in enumerate(escaped)]
                + ["endmodule\n"]
            )
            if not _MEMORY.search(text):
                synth = self._yosys_script(_MODULES_TOP, memories=False)
            modules, seconds = self._run_yosys(
                self._file_stem(unknown[0]),
                text,
                f"setattr -mod -set keep_hierarchy 1 {''.join(escaped)}\n{synth}",
                " and ".join([*unknown[:2], *[f"{len(unknown) - 2} more"] * (len(unknown) > 2)]),
                [design.modules[child] for child in sorted(stubs)],
            )
            share = round(seconds / len(unknown), 2)
        price = functools.cache(lambda kind: self.family.cell_cost(kind) or Cost())
        for name in unknown:
            module = modules[name]
            ports = {port: [p["direction"], len(p["bits"])] for port, p in module["ports"].items()}
            found = {
                "cost": vars(self.device.module_cost(module, children[name])),
                "ports": ports,
                "outports": count_luts_by_purpose(
                    module, price, self.family.inputs, **purposes[name]
                ),
                "seconds": share,
            }
            known[name] = self.cache.put(keys[name], found)
        return [known[name] for name in names]

    def _port_purposes(self, name: str) -> dict[str, Any]:
        """Return the arguments of `count_luts_by_purpose` about the ports of the module `name`."""
        router = self.design.classes.get(name)
        return {
            "outports": list(router.outports) if router else [],
            "inports": dict(router.inports) if router else {},
        }

    def map_roms(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """Map ROMs: translate them into cells of the device, such as LUTs and block RAMs.

        All ROMs without a cached result are mapped in one run of yosys.

        Parameters
        ----------
        names : sequence of str
            Names of contents, the words in a ROM; the design has them by these names.

        Returns
        -------
        list of dict
            For each ROM: ``cost`` with the fields of `Cost`, and ``seconds``, its share of the
            time.
        """
        text = self.design.modules[self.design.rom_module]
        synth = self._yosys_script(ROMS_TOP)
        contents = {name: self.design.contents[name] for name in names}
        keys = {
            name: self._cache_key("rom", synth, text, c.instance_parameters())
            for name, c in contents.items()
        }
        known = {name: self.cache.get(key) for name, key in keys.items()}
        unknown = {name: contents[name] for name in names if known[name] is None}
        if unknown:
            text += roms_text(unknown, self.design.rom_module)
            modules, seconds = self._run_yosys(f"roms-{names[0]}", text, synth, "the ROMs")
            share = round(seconds / len(unknown), 2)
            for name in unknown:
                cost = vars(self.device.module_cost(modules[name], ()))
                known[name] = self.cache.put(keys[name], {"cost": cost, "seconds": share})
        return [known[name] for name in names]

    def map_in_harness(self, name: str, ports: Ports, seeds: Iterable[int]) -> dict[str, Any]:
        """Map a module in a harness, as the netlist for `place_and_route`.

        To map is to translate Verilog into cells of the device. The netlist has all modules inside
        of this one. The harness connects the many ports of the module to few pins, by shift
        registers. Nothing runs if the results of all seeds are cached.

        Parameters
        ----------
        name : str
            Name of the module.
        ports : dict of str to (str, int)
            Port -> direction and number of bits, as from `map_module`.
        seeds : iterable of int
            Seeds for which `place_and_route` will be called.

        Returns
        -------
        dict
            ``seconds`` has the time that yosys took.
        """
        text = self._text_in_harness(name, ports)
        synth = self._yosys_script(HARNESS, pads=True)
        key = self._cache_key("harness", synth, text)
        known = self.cache.get(key)
        seen = [self.cache.get(self._place_key(text, seed)) is not None for seed in seeds]
        if known is not None and all(seen):
            return known
        (self.folder / PINS).write_text(self.device.pins, encoding="utf-8")
        _, seconds = self._run_yosys(self._file_stem(name) + "-pnr", text, synth, name)
        return self.cache.put(key, {"seconds": seconds})

    def place_and_route(self, name: str, ports: Ports, seed: int) -> dict[str, Any]:
        """Place and route a module that `map_in_harness` has prepared.

        Parameters
        ----------
        name : str
            Name of the module.
        ports : dict of str to (str, int)
            Port -> direction and number of bits, as for `map_in_harness`.
        seed : int
            Seed of the tool's random choices.

        Returns
        -------
        dict
            ``mhz``: clock rate, or None and then ``why``, the reason. ``placed``: number of each
            kind of location in use, harness included. ``logic_mhz``: clock rate if wires had no
            delay. ``path``: result of `slowest_path`. ``seconds``: time that the tool took.
        """
        key = self._place_key(self._text_in_harness(name, ports), seed)
        if (known := self.cache.get(key)) is not None:
            return known
        stem = self._file_stem(name) + "-pnr"
        report, log = f"{stem}-{seed}.report.json", f"{stem}-{seed}.log"
        begun = time.perf_counter()
        result = dict.fromkeys(("mhz", "placed", "logic_mhz", "path"))
        try:
            self._run_pnr(name, seed, f"{stem}.json", report, log)
        except WorkFailed as error:
            if not PLACEMENT_FAILURE.search(str(error)):
                raise
            said = (self.folder / log).read_text(encoding="utf-8", errors="replace")
            over = [row for row in utilisation(said) if row[1] > row[2]]
            why = "{1} {0} of {2}".format(*over[0]) if over else tools.error_line(said)
            result |= {"why": f"does not fit: {why}", "seconds": _seconds_since(begun)}
            return self.cache.put(key, result)
        result["seconds"] = _seconds_since(begun)
        found = load_json(self.folder / report, self.pnr_tool, name)
        rates = [clock["achieved"] for clock in found["fmax"].values()]
        no_path = f"{self.pnr_tool} found no path from register to register"
        result |= {
            "mhz": round(min(rates), 2) if rates else None,
            "why": None if rates else no_path,
            "placed": {kind: u["used"] for kind, u in found["utilization"].items() if u["used"]},
            "logic_mhz": logic_mhz(found),
            "path": slowest_path(found),
        }
        return self.cache.put(key, result)

    def _run_pnr(self, name: str, seed: int, netlist: str, report: str, log: str) -> None:
        """Place and route the module `name`, by one placer after another until one succeeds.

        `seed` is that of the tool's random choices. `netlist`, `report` and `log` are the names of
        files in the folder: the input of the tool, its report and its log.
        """
        args = (
            *self.device.device,
            *self.family.pnr_args,
            *("--timing-allow-fail", "--seed", str(seed)),
            *("--json", netlist, "--report", report),
        )
        *others, last = self.family.placers or (None,)
        for placer in (*others, last):
            choice = ["--placer", placer] if placer else []
            try:
                tools.run(
                    self.pnr_tool,
                    (*args, *choice),
                    folder=self.folder,
                    log=log,
                    what=name,
                    makes=[report],
                    look=None if placer == last else PlacerWatch(self.folder / log),
                )
            except WorkFailed:
                if placer == last:
                    raise
            else:
                return

    @property
    def pnr_tool(self) -> str:
        """The place-and-route tool."""
        assert self.family.pnr is not None, "nothing is placed without a tool"
        return self.family.pnr

    def _yosys_script(self, top: str, **options: bool) -> str:
        return self.family.yosys_script(top, self.mapping, **options)

    def _cache_key(self, *parts: object) -> str:
        family = self.device.family, self.family.defines, self.family.files
        return digest(_FORMAT, *family, self.versions["yosys"], *parts)

    def _place_key(self, text: str, seed: int) -> str:
        family = self.family
        tool, args = self.pnr_tool, (*self.device.device, *family.pnr_args, *family.placers)
        return self._cache_key(
            "place",
            self._yosys_script(HARNESS, pads=True),
            tool,
            self.versions[tool],
            *args,
            text,
            seed,
        )

    def _file_stem(self, name: str) -> str:
        # Names of modules may have characters that files may not, or differ only in their case.
        place = list(self.design.modules).index(name)
        return f"{place}-" + re.sub(r"\W", "_", name)

    def _module_of(self, name: str) -> str:
        """Return the name of the Verilog module for `name`, the name of a module or of a ROM.

        All ROMs are instances of one module, so the result is this module for the name of ROM
        contents.
        """
        return self.design.rom_module if name in self.design.contents else name

    def _text_in_harness(self, name: str, ports: Ports) -> str:
        """Return the Verilog of module `name`, of all modules inside of it, and of its harness.

        The harness connects the many ports of the module to few pins, by shift registers. `ports`
        has the direction and the number of bits of each port of the module.
        """
        below = {name}
        for parent in reversed(self.design.modules):  # parents come before their children
            if parent in below:
                below.update(map(self._module_of, self.design.instances.get(parent, {})))
        texts = [text for module, text in self.design.modules.items() if module in below]
        return "\n".join([*texts, harness_text(name, ports)])

    def _run_yosys(
        self, stem: str, text: str, synth: str, what: str, children: Sequence[str] = ()
    ) -> tuple[dict[str, Any], float]:
        """Map Verilog with yosys.

        Parameters
        ----------
        stem : str
            Stem of the names of the files in the folder.
        text : str
            The Verilog.
        synth : str
            Yosys commands that map it.
        what : str
            Noun for the Verilog in error messages.
        children : sequence of str
            Verilog of modules that are black boxes.

        Returns
        -------
        modules : dict
            ``modules`` of the netlist that yosys writes as JSON.
        seconds : float
            Time that yosys took.
        """
        (self.folder / f"{stem}.v").write_text(text, encoding="utf-8")
        for file, content in self.family.files:
            write_text_file(self.folder / file, content)  # whole: steps run in parallel
        defined = "".join(f"-D{name} " for name in self.family.defines)
        script = f"read_verilog {defined}{stem}.v\n{synth}write_json {stem}.json\n"
        if children:
            (self.folder / f"{stem}-children.v").write_text("\n".join(children), encoding="utf-8")
            # Without these commands, yosys elaborates a module again when it sets the parameters of
            # its black boxes, after mapping.
            once = "hierarchy -auto-top\nproc\nsetattr -unset reprocess_after c:*\n"
            script = script.replace(synth, once + synth, 1)
            script = f"read_verilog -lib {stem}-children.v\n{script}"
        (self.folder / f"{stem}.ys").write_text(script, encoding="utf-8")
        args, made = ["-s", f"{stem}.ys"], f"{stem}.json"
        begun = time.perf_counter()
        tools.run("yosys", args, folder=self.folder, log=f"{stem}.log", what=what, makes=[made])
        seconds = _seconds_since(begun)
        return load_json(self.folder / made, "yosys", what)["modules"], seconds


def _seconds_since(begun: float) -> float:
    return round(time.perf_counter() - begun, 2)


def _escape_name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else f"\\{name}"


def load_json(path: Path, tool: str, what: str) -> dict[str, Any]:
    """Return the JSON value in the file `path`, which a tool wrote.

    `tool` and `what`, the input of the tool, are named in the error message.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise WorkFailed(f"{tool} on {what} left no readable {path.name}: {error}") from None
