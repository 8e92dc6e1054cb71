"""Gates of the emitted Verilog: Yosys converts each module to gates, registers and memories.

Modules of the netlist stay separate, and all modules inside them are flattened. The top consists of
instances and named nets. Everything here is read from the Verilog, and nothing from the netlist.

A *bit* is a number that Yosys gives to a net of one bit in a module, or a constant as text.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import Any, NamedTuple

from ..rtl.netlist import Role
from ..toolchain import tools
from ..toolchain.cache import Cache, digest
from ..toolchain.folders import work_folder
from ..verilog.design import Design, translate_path
from .report import make_refutation

__all__ = ["OPERATOR_INPUT", "NEUTRAL", "WORDS", "WORDS_IN", "WORDS_OUT", "Bit", "Flop",
           "Gate", "GateModule", "GateText", "FabricOperators", "Ram", "TopInstance",
           "TopInstances", "parse_module", "cone_of_influence", "read_gates"]  # fmt: skip

#: Yosys script from processes to gates, registers and memories. Sums in combiners stay adders. The
#: first techmap pass may turn a product into adders, hence two passes. Large cases become tables,
#: with 0 in entries that no case selects, so that a choice among zeros is 0.
GATES_SCRIPT = """\
flatten
memory_collect
opt_expr
opt_clean
select -set own t:$shiftx
pmux2shiftx
setundef -zero t:$shiftx @own %d
chtype -set $shift t:$shiftx @own %d
dffunmap
techmap t:$mem_v2 A:combines/t:$add %u %n
techmap t:$mem_v2 A:combines/t:$add %u %n
opt_expr
opt_merge
opt_clean
write_json gates.json
"""

SCRIPT = """\
read_verilog text.v
hierarchy -check -top {top}
proc
setattr -mod -set keep_hierarchy 1 A:hdlname={rom} {kept}
"""

#: A bit: its number in the module, or a constant as text.
Bit = int | str

#: Ports that carry words into modules, out of modules, and both.
WORDS_IN = frozenset({"rx", "inject", "write_data", "sent"})
WORDS_OUT = frozenset({"tx", "inject", "read_data", "arrived", "result", "made", "tdata"})
WORDS = WORDS_IN | WORDS_OUT

#: Roles whose modules have proofs of their own; only their ports are read.
PORT_ONLY_ROLES = {Role.STREAM, Role.BUFFER}

#: Bit numbers from here on are added by this module; Yosys uses lower ones.
FIRST_ADDED_BIT = 1 << 32

#: Prefix of the kind of gate that marks identity words; the number of the class of bits follows.
NEUTRAL = "NEUTRAL "

#: Prefix of added inputs with the control bits of the operator that the run chooses.
OPERATOR_INPUT = "chosen operator "


class FabricOperators(NamedTuple):
    """The operators of a fabric, as the conversion to gates needs them.

    Parameters
    ----------
    modules : list of str
        Name of the operator module, which computes all operators of the fabric; empty if there is
        none.
    classes : list of (list of int)
        Classes of bit positions in a word. Positions are in one class if the identity word of every
        operator has equal bits there. (The identity word changes no word it is combined with, such
        as 0 for a sum.)
    latency : int
        Cycles from two words to the result of the operator module.
    """

    modules: list[str]
    classes: list[list[int]]
    latency: int = 0


NO_OPERATORS = FabricOperators([], [])


class Gate(NamedTuple):
    """A gate with one output bit y, and up to three operands a, b and s.

    ==========  =================================================================================
    kind        output
    ==========  =================================================================================
    AND OR XOR  of a and b
    NOT         of a
    MUX         b if s is 1, otherwise a
    NEUTRAL k   `sums.NEUTRAL` if a equals the bit of class k of the identity word, otherwise a
    ALIKE       a if a and b are the same symbol, otherwise unknown
    SAME        a if b and s are the same constant, otherwise unknown
    SUM         symbolic sum of the words of a and b, at bit position s
    ==========  =================================================================================

    The last four kinds replace operators, which are proved separately. The identity word of an
    operator changes no word it is combined with, such as 0 for a sum; `FabricOperators` defines
    classes.
    """

    kind: str
    y: int
    a: Bit
    b: Bit = "0"
    s: Bit = "0"


class Flop(NamedTuple):
    """A one-bit register with output q and input d."""

    q: int
    d: Bit


@dataclass(frozen=True)
class Ram:
    """A memory or a ROM inside a module, with asynchronous reads.

    Parameters
    ----------
    size, width : int
        Number of words, and bits per word.
    initial : str
        Initial contents, the last bit of the last word first; used only for ROMs.
    reads : list of (list of Bit, list of int)
        Address and data of each read port.
    writes : list of (list of Bit, list of Bit, list of Bit)
        Address, data, and an enable per bit, of each write port.
    collides : bool
        True if a word is unknown when it is read and written in the same cycle.
    name : str
        Name in the Verilog; empty if Yosys made the ROM from a case statement.
    """

    size: int
    width: int
    initial: str
    reads: list[tuple[list[Bit], list[int]]]
    writes: list[tuple[list[Bit], list[Bit], list[Bit]]]
    collides: bool
    name: str = ""


@dataclass(frozen=True)
class GateModule:
    """A module as gates, registers and memories.

    A bit is a number that Yosys gives to a net of one bit, or a constant such as ``"0"``.

    Parameters
    ----------
    inputs, outputs : dict of str to (list of Bit)
        Port -> its bits, the lowest first.
    gates, flops, rams : list
        Gates, one-bit registers, and memories.
    names : dict of int to str
        Bit -> its name, for bits with a name in the Verilog.
    """

    name: str
    inputs: dict[str, list[Bit]]
    outputs: dict[str, list[Bit]]
    gates: list[Gate] = field(default_factory=list)
    flops: list[Flop] = field(default_factory=list)
    rams: list[Ram] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)

    @cached_property
    def gate_of(self) -> dict[Bit, Gate]:
        """The gate that drives a bit, as a dict: bit -> gate."""
        return {gate.y: gate for gate in self.gates}

    @cached_property
    def flop_of(self) -> dict[Bit, Bit]:
        """The input of a register, as a dict: output bit of the register -> its input bit."""
        return {flop.q: flop.d for flop in self.flops}

    def operands_of(self, bit: Bit) -> list[Bit]:
        """Return the bits from which a bit is computed in the same cycle.

        These are the inputs of its gate, or the address of the memory read that drives it.
        """
        if bit in self.gate_of:
            gate = self.gate_of[bit]
            return [*gate[2:4]] if gate.kind == "SUM" else [*gate[2:]]
        if bit in self.read_of:
            number, port, _ = self.read_of[bit]
            return self.rams[number].reads[port][0]
        return []

    @cached_property
    def read_of(self) -> dict[Bit, tuple[int, int, int]]:
        """The memory read that drives a bit, as a dict: bit -> three numbers.

        The numbers are the index of the memory, the index of its read port, and the position of the
        bit within the word.
        """
        return {
            bit: (number, port, k)
            for number, ram in enumerate(self.rams)
            for port, (_, data) in enumerate(ram.reads)
            for k, bit in enumerate(data)
        }


class TopInstance(NamedTuple):
    """An instance in the top.

    Parameters
    ----------
    module : str
        Name of its module.
    pins : dict of str to (list of Bit)
        Connected bits of each port.
    rom : str
        Contents of a ROM, the last bit of the last row first; empty for other modules.
    """

    module: str
    pins: dict[str, list[Bit]]
    rom: str = ""


class TopInstances(dict[str, TopInstance]):
    """Instances in the top by name; the access to a missing one raises `Refuted`.

    An instance is missing if Yosys has removed it, because nothing uses its outputs.
    """

    def __missing__(self, name: str) -> TopInstance:
        raise make_refutation("wiring", name, f"Instance {name} must drive what something reads")


@dataclass(frozen=True)
class GateText:
    """The whole Verilog of a fabric as gates, module by module.

    Parameters
    ----------
    modules : dict of str to GateModule
        All modules except the top. ROMs of one shape are one module.
    inputs, outputs : dict of str to (list of Bit)
        Bits of each port of the top.
    instances : TopInstances
        Instances in the top, by their names in the netlist.
    nets : dict of str to (list of Bit)
        Bits of each net of the top, by its name in the netlist.
    """

    modules: dict[str, GateModule]
    inputs: dict[str, list[Bit]]
    outputs: dict[str, list[Bit]]
    instances: TopInstances
    nets: dict[str, list[Bit]]


def read_gates(
    design: Design,
    roles: Mapping[str, Role],
    cache: Cache | None = None,
    *,
    operators: FabricOperators = NO_OPERATORS,
) -> GateText:
    """Convert the Verilog of a fabric to gates.

    Parameters
    ----------
    design : Design
        The Verilog, with all modules.
    roles : dict of str to Role
        Role (kind of module in the netlist) of each module that the top instantiates, except ROMs.
        For roles in `PORT_ONLY_ROLES`, only the ports of the module are read.
    cache : Cache, optional
        Cache for the output of Yosys; without it, Yosys always runs.
    operators : FabricOperators
        Operator module, which becomes symbolic sums.
    """
    kept = " ".join([*roles, *operators.modules])
    script = SCRIPT.format(top=design.top, rom=design.rom_module, kept=kept)
    for name, role in roles.items():
        if role is Role.COMBINER:
            script += f"setattr -mod -set combines 1 {name}\n"
    script += GATES_SCRIPT
    return _parse_gates(_run_yosys(script, design.text, cache), design, roles, operators)


def _run_yosys(script: str, text: str, cache: Cache | None) -> dict[str, Any]:
    """Run a Yosys script on Verilog, `text`; return the netlist, as Yosys writes it in JSON.

    If the cache has the result of an earlier call with the same script and Verilog, Yosys does not
    run.
    """
    key = digest("gates", script, text, tools.version("yosys"))
    if kept := cache and cache.get(key):
        return dict(kept)
    with work_folder("gates") as folder:
        (folder / "text.v").write_text(text, encoding="utf-8")
        (folder / "script.ys").write_text(script, encoding="utf-8")
        tools.run("yosys", ["-q", "-s", "script.ys"], folder=folder, log="yosys.log",
                  what="the emitted text", makes=["gates.json"])  # fmt: skip
        found = dict(json.loads((folder / "gates.json").read_text(encoding="utf-8")))
    if cache:
        cache.put(key, found)
    return found


def _parse_gates(
    found: dict[str, Any], design: Design, roles: Mapping[str, Role], operators: FabricOperators
) -> GateText:
    """Return the whole Verilog of a fabric as gates, from the JSON of Yosys.

    Parameters
    ----------
    found : dict
        The JSON.
    design : Design
        The Verilog, for the names of the top and of the ROM module.
    roles : dict of str to Role
        Role of each module, as for `read_gates`.
    operators : FabricOperators
        Operator module, as for `read_gates`.
    """
    top, modules = found["modules"][design.top], dict[str, GateModule]()
    # ROMs of one shape become one module, whose instances hold the contents.
    shapes: dict[str, tuple[str, str]] = {}
    for name, entry in found["modules"].items():
        if entry["attributes"].get("hdlname") == design.rom_module:
            module = parse_module(name, entry)
            (ram,) = module.rams
            shape = f"{design.rom_module} of {ram.size} rows of {ram.width} bits"
            shapes[name] = shape, ram.initial
            bare = replace(module, name=shape, rams=[replace(ram, initial="")], names={})
            if modules.setdefault(shape, bare) != bare:
                raise ValueError(f"ROMs of {shape} must be alike but for what they hold")
        elif roles.get(name) in PORT_ONLY_ROLES:
            modules[name] = GateModule(name, *_parse_ports(entry["ports"]))
        elif name != design.top:
            modules[name] = parse_module(name, entry, operators)
    instances = TopInstances()
    for name, cell in top["cells"].items():
        kind = cell["type"]
        if kind in shapes or not kind.startswith("$"):
            kind, rom = shapes.get(kind, (kind, ""))
            known = translate_path(name, design.instance_names) or name
            instances[known] = TopInstance(kind, cell["connections"], rom)
    ports = top["ports"]
    nets = {
        translate_path(name, design.net_names) or name: entry["bits"]
        for name, entry in top["netnames"].items()
    }
    return GateText(modules, *_parse_ports(ports), instances, nets)


def _parse_ports(ports: dict[str, Any]) -> tuple[dict[str, list[Bit]], dict[str, list[Bit]]]:
    """Return two dicts, for inputs and outputs: name of the port -> its bits.

    `ports` is the entry ``ports`` of a module in the JSON of Yosys.
    """
    by = {
        direction: {n: p["bits"] for n, p in ports.items() if p["direction"] == direction}
        for direction in ("input", "output")
    }
    return by["input"], by["output"]


def _parse_number(value: Any) -> int:
    return int(value.replace("x", "0"), 2) if isinstance(value, str) else int(value)


def parse_module(
    name: str, entry: dict[str, Any], operators: FabricOperators = NO_OPERATORS
) -> GateModule:
    """Convert a module from the JSON of Yosys; operators become symbolic gates (see `Gate`).

    Parameters
    ----------
    name : str
        Name of the module.
    entry : dict
        Entry of ``modules`` in the JSON.
    operators : FabricOperators
        Operator module, and classes of bit positions.
    """
    inputs, outputs = _parse_ports(entry["ports"])
    module = GateModule(name, inputs, outputs)
    for net, facts in entry["netnames"].items():
        for k, bit in enumerate(facts["bits"]):
            if isinstance(bit, int) and (not facts.get("hide_name") or bit not in module.names):
                module.names[bit] = f"{net}[{k}]" if len(facts["bits"]) > 1 else net
    for cell in entry["cells"].values():
        kind, pins = cell["type"], cell["connections"]
        if kind == "$_DFF_P_":
            module.flops.append(Flop(pins["Q"][0], pins["D"][0]))
        elif kind == "$mem_v2":
            module.rams.append(_parse_memory(cell))
        elif kind in ("$_AND_", "$_OR_", "$_XOR_", "$_NOT_", "$_MUX_"):
            bits = {pin.lower(): pins[pin][0] for pin in "ABS" if pin in pins}
            module.gates.append(Gate(kind.strip("$_"), pins["Y"][0], **bits))
        elif kind in operators.modules:
            _add_operator(module, pins, operators.classes, operators.latency)
        elif kind == "$add" and len(pins["A"]) == len(pins["B"]) == len(pins["Y"]):
            named = {port: pins[pin] for port, pin in (("a", "A"), ("b", "B"), ("result", "Y"))}
            _add_operator(module, named, operators.classes)
        elif kind != "$scopeinfo":
            raise ValueError(f"Cell of module {name} must be a gate, not {kind}")
    # A multiplexer before a write port that selects by the write enable is bypassed, because its
    # other input matters only while nothing is written.
    gate_of: dict[Bit, Gate] = {gate.y: gate for gate in module.gates if gate.kind == "MUX"}

    def bypass_multiplexer(bit: Bit, enables: set[Bit]) -> Bit:
        gate = gate_of.get(bit)
        return gate.b if gate and enables <= {gate.s, "0"} else bit

    found = []
    for ram in module.rams:
        writes = []
        for address, data, enable in ram.writes:
            enables = set(enable)
            writes.append(([bypass_multiplexer(bit, enables) for bit in address],
                           [bypass_multiplexer(bit, enables) for bit in data], enable))  # fmt: skip
        found.append(replace(ram, writes=writes))
    module.rams[:] = found
    return module


def _add_operator(
    module: GateModule,
    pins: dict[str, list[Bit]],
    classes: Sequence[Sequence[int]],
    latency: int = 0,
) -> None:
    """Add gates to `module` that replace an operator by symbolic sums.

    `pins` has the bits at each port of the operator module: the operands ``a`` and ``b``, the
    control bits ``code``, and the result. `classes` are classes of bit positions: in a class, the
    identity word of every operator has equal bits. A bit of the result is the symbolic sum of the
    operands if all of the following hold, otherwise it is unknown:

    - In operand a, the bit at that position and the first bits of all other classes are bits of one
      word (the same symbol), or all of them equal the bits of the identity word (gates NEUTRAL and
      ALIKE).
    - The same holds for operand b.
    - The control bits ``code`` are those of the operator that the run chooses (gates SAME), in the
      cycle of the operands and in all cycles until the result.
    - There was no reset in these cycles.

    `latency` registers delay the symbolic sum.
    """
    code, new = pins.get("code", []), count(FIRST_ADDED_BIT + 2 * len(module.gates))

    def add_gate(kind: str, a: Bit, b: Bit = "0", s: Bit = "0", y: int | None = None) -> int:
        module.gates.append(Gate(kind, next(new) if y is None else y, a, b, s))
        return module.gates[-1].y

    def check_code(bit: int) -> int:
        for control, chosen in zip(code, right, strict=True):
            bit = add_gate("SAME", bit, control, chosen)
        return bit

    right = [
        module.inputs.setdefault(f"{OPERATOR_INPUT}{k}", [next(new)])[0] for k in range(len(code))
    ]
    class_of = {position: k for k, each in enumerate(classes) for position in each}
    first = [
        {port: add_gate(f"{NEUTRAL}{k}", pins[port][each[0]]) for port in "ab"}
        for k, each in enumerate(classes)
    ]
    for position, bit in enumerate(pins["result"]):
        operands = {}
        for port in "ab":
            own = add_gate(f"{NEUTRAL}{class_of[position]}", pins[port][position])
            for k, others in enumerate(first):
                if k != class_of[position]:
                    own = add_gate("ALIKE", own, others[port])
            operands[port] = own
        made = check_code(add_gate("SUM", operands["a"], operands["b"], str(position)))
        for _ in range(latency):
            delayed = next(new)
            module.flops.append(Flop(delayed, add_gate("MUX", made, "x", pins["rst"][0])))
            made = check_code(delayed)
        add_gate("OR", made, y=int(bit))


def _parse_memory(cell: dict[str, Any]) -> Ram:
    """Return a memory, given as a cell in the JSON of Yosys."""
    number = lambda name: _parse_number(cell["parameters"][name])
    pins, width, bits = cell["connections"], number("WIDTH"), number("ABITS")
    if number("RD_CLK_ENABLE") or number("OFFSET"):
        raise ValueError("Memory must be read without a clock, from address 0 on")
    cut = lambda name, k, size: pins[name][k * size : (k + 1) * size]
    reads = [(cut("RD_ADDR", k, bits), cut("RD_DATA", k, width)) for k in range(number("RD_PORTS"))]
    writes = [
        (cut("WR_ADDR", k, bits), cut("WR_DATA", k, width), cut("WR_EN", k, width))
        for k in range(number("WR_PORTS"))
    ]
    collides = "no_rw_check" in (cell["attributes"].get("ramstyle", ""), *cell["attributes"])
    initial = cell["parameters"]["INIT"]
    name = cell["parameters"]["MEMID"]
    name = "" if name.startswith("$") else name.removeprefix("\\")
    return Ram(number("SIZE"), width, initial, reads, writes, collides, name)


class Cone(NamedTuple):
    """The bits of a module on which some chosen bits depend, directly or through other gates.

    Parameters
    ----------
    bits : set of int
        The bits, among them the chosen ones.
    rams : dict of int to (set of int)
        Index of a memory -> positions within its words on which the chosen bits depend.
    """

    bits: set[int]
    rams: dict[int, set[int]]


def cone_of_influence(
    module: GateModule, wanted: Collection[Bit], *, through_flops: bool = True
) -> Cone:
    """Return all bits of a module on which some chosen bits depend.

    Parameters
    ----------
    wanted : collection of Bit
        The chosen bits; they are in the result, too.
    through_flops : bool
        True to continue through registers and memories to earlier cycles; False to end there.
    """
    read_of, flop_of = module.read_of, module.flop_of if through_flops else {}
    found, left = Cone(set(), defaultdict(set)), list(wanted)
    while left:
        bit = left.pop()
        if isinstance(bit, str) or bit in found.bits:
            continue
        found.bits.add(bit)
        left += module.operands_of(bit)
        if bit in flop_of:
            left.append(flop_of[bit])
        elif bit in read_of:
            number, _, k = read_of[bit]
            found.rams[number].add(k)
            for at, data, enable in module.rams[number].writes:
                left += [*at, enable[k]]
                left += [data[k]] if through_flops else []
    return found
