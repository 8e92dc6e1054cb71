"""The register map as a file in SystemRDL 2.0, the register language of Accellera.

Other tools generate C headers and documents from this file.
"""

from ...contract.registers import DATA_BITS, Access, Field, Register, RegisterMap, Window
from ...toolchain.quoting import escape_unprintable, markdown_code

__all__ = ["system_rdl"]

#: Access properties of a field, for software (sw) and hardware (hw).
FIELD_PROPERTIES = {
    Access.READ: "sw = r; hw = w;",
    Access.WRITE: "sw = w; hw = r; singlepulse;",
    Access.READ_WRITE: "sw = rw; hw = r;",
    Access.CLEAR: "sw = rw; onwrite = woclr; hw = w; hwset;",
}

#: Access properties of a constant.
CONSTANT_PROPERTIES = "sw = r; hw = na;"

#: Access properties of a window.
WINDOW_PROPERTIES = {Access.READ: "sw = r;", Access.WRITE: "sw = w;"}


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
    The last line of the text closes the ``addrmap``.

    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("2x2", "allgather"))
    >>> register_map = tf.Fabric(program, bus="wishbone").register_map
    >>> print(system_rdl(register_map, "fabric", "a fabric").splitlines()[-1])
    };
    """
    lines = [
        f"addrmap {name} {{",
        f"  name = {_quote_text(name)};",
        # Tools render descriptions as Markdown. Without quoting, names would become markup.
        f"  desc = {_quote_text(markdown_code(title))};",
        "  lsb0;",
        # Registers are an `addrmap` beside the memories, so that each of them becomes an address
        # block of IP-XACT.
        "",
        "  addrmap {",
        f"    default regwidth = {DATA_BITS};",
        f"    default accesswidth = {DATA_BITS};",
        *(line for register in register_map.registers for line in _register_lines(register)),
        "  } registers @ 0x0;",
        *(line for window in register_map.windows for line in _window_lines(window)),
        "};",
    ]
    return "\n".join(lines) + "\n"


def _register_lines(register: Register) -> list[str]:
    return [
        "",
        "    reg {",
        f"      name = {_quote_text(register.name)};",
        f"      desc = {_quote_text(register.meaning)};",
        *(_field_line(register, field) for field in register.fields),
        f"    }} {register.name} @ {register.offset:#x};",
    ]


def _field_line(register: Register, field: Field) -> str:
    constant = register.access is Access.READ and not field.port
    properties = CONSTANT_PROPERTIES if constant else FIELD_PROPERTIES[register.access]
    shown = register.access is Access.READ and field.port
    reset = "" if shown else f" = {field.reset:#x}"
    high = field.low + field.width - 1
    return (
        f"      field {{ desc = {_quote_text(field.meaning)}; {properties} }} "
        f"{field.name}[{high}:{field.low}]{reset};"
    )


def _window_lines(window: Window) -> list[str]:
    # One memory for all nodes: IP-XACT has no arrays of memories.
    word = DATA_BITS // 8
    stride, used = window.stride // word, window.flits * window.flit_bytes // word
    places = f"; entries {stride} n to {stride} n + {used - 1} are of node n" * (window.nodes > 1)
    return [
        "",
        "  external mem {",
        f"    name = {_quote_text(window.name)};",
        f"    desc = {_quote_text(window.meaning + places)};",
        f"    mementries = {window.nodes * stride};",
        f"    memwidth = {DATA_BITS};",
        f"    {WINDOW_PROPERTIES[window.access]}",
        f"  }} {window.name} @ {window.offset:#x};",
    ]


def _quote_text(text: str) -> str:
    return '"' + escape_unprintable(text).replace("\\", "\\\\").replace('"', '\\"') + '"'
