"""The register map as SystemRDL 2.0, from which other tools generate C headers and documents."""

from ...contract.registers import DATA_BITS, Access, Field, Register, RegisterMap, Window
from ...toolchain.quoting import markdown_code, visible

__all__ = ["system_rdl"]

#: Access properties of a field, for software (sw) and hardware (hw).
PROPERTIES = {
    Access.READ: "sw = r; hw = w;",
    Access.WRITE: "sw = w; hw = r; singlepulse;",
    Access.READ_WRITE: "sw = rw; hw = r;",
    Access.CLEAR: "sw = rw; onwrite = woclr; hw = w; hwset;",
}

#: Access properties of a constant.
CONSTANT = "sw = r; hw = na;"

#: Access properties of a window.
WINDOW = {Access.READ: "sw = r;", Access.WRITE: "sw = w;"}


def system_rdl(register_map: RegisterMap, name: str, title: str) -> str:
    """Return a register map as the text of a SystemRDL ``addrmap``.

    Parameters
    ----------
    register_map : RegisterMap
        The addresses of registers and windows.
    name : str
        Name of the ``addrmap``, that of the top module.
    title : str
        Description of the fabric in a few words.

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("2x2", "allgather"))
    >>> register_map = tf.Fabric(program, bus="wishbone").register_map
    >>> print(system_rdl(register_map, "fabric", "a fabric").splitlines()[-1])
    };
    """
    lines = [
        f"addrmap {name} {{",
        f"  name = {_quoted(name)};",
        # Tools render descriptions as Markdown. Without quoting, names would become markup.
        f"  desc = {_quoted(markdown_code(title))};",
        "  lsb0;",
        # Registers are an `addrmap` beside the memories, so that each of them becomes an address
        # block of IP-XACT.
        "",
        "  addrmap {",
        f"    default regwidth = {DATA_BITS};",
        f"    default accesswidth = {DATA_BITS};",
        *(line for register in register_map.registers for line in _register(register)),
        "  } registers @ 0x0;",
        *(line for window in register_map.windows for line in _window(window)),
        "};",
    ]
    return "\n".join(lines) + "\n"


def _register(register: Register) -> list[str]:
    return [
        "",
        "    reg {",
        f"      name = {_quoted(register.name)};",
        f"      desc = {_quoted(register.meaning)};",
        *(_field(register, field) for field in register.fields),
        f"    }} {register.name} @ {register.offset:#x};",
    ]


def _field(register: Register, field: Field) -> str:
    constant = register.access is Access.READ and not field.port
    properties = CONSTANT if constant else PROPERTIES[register.access]
    shown = register.access is Access.READ and field.port
    reset = "" if shown else f" = {field.reset:#x}"
    high = field.low + field.width - 1
    return (
        f"      field {{ desc = {_quoted(field.meaning)}; {properties} }} "
        f"{field.name}[{high}:{field.low}]{reset};"
    )


def _window(window: Window) -> list[str]:
    # One memory for all nodes: IP-XACT has no arrays of memories.
    word = DATA_BITS // 8
    stride, used = window.stride // word, window.flits * window.flit_bytes // word
    places = f"; entries {stride} n to {stride} n + {used - 1} are of node n" * (window.nodes > 1)
    return [
        "",
        "  external mem {",
        f"    name = {_quoted(window.name)};",
        f"    desc = {_quoted(window.meaning + places)};",
        f"    mementries = {window.nodes * stride};",
        f"    memwidth = {DATA_BITS};",
        f"    {WINDOW[window.access]}",
        f"  }} {window.name} @ {window.offset:#x};",
    ]


def _quoted(text: str) -> str:
    return '"' + visible(text).replace("\\", "\\\\").replace('"', '\\"') + '"'
