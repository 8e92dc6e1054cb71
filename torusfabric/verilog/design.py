"""What the Verilog side hands to the synthesis side: module texts and who instantiates whom."""

from dataclasses import dataclass, field

__all__ = ["Design", "RouterShape"]


@dataclass(frozen=True)
class RouterShape:
    """The outer form of a router, whatever it is told to do.

    Parameters
    ----------
    ports : int
    lanes : int
        Words of its own that a node can send at once by different ports: at least one.
    width : int
    settings : int
        Rows of its ROM; 0 where it is told from outside what to select.
    """

    ports: int
    lanes: int
    width: int
    settings: int


@dataclass(frozen=True)
class Design:
    """A design as Verilog text, one module at a time.

    Parameters
    ----------
    modules : dict of str to str
        Module name -> Verilog text of that one module, children before parents; each is
        self-contained apart from instances of other modules of the dict.
    top : str
        The name of the outermost module.
    instances : dict of str to dict
        Module -> {child module: how many instances}; modules without children may be left out.
    classes : list of (str, int)
        (Router module, number of nodes it serves), one entry a node class.
    outports : dict of str to tuple of str
        Router module -> its output ports that drive links. Where given, the report tells the
        cost of each out-port bit; other outputs (delivery to the node) are not counted as such.
    inports : dict of str to dict
        Router module -> {input port that brings data: part of the report for the tables that read
        it first}. Where given, the report tells where a router's tables go.
    shapes : dict of str to RouterShape
        Router module -> its outer form. Where given, the report compares it with a full crossbar.
    parts : dict of str to str
        Module -> the part of the fabric that it belongs to; routers may be left out.
    header : str
        Comment above the whole.
    """

    modules: dict[str, str]
    top: str
    instances: dict[str, dict[str, int]]
    classes: list[tuple[str, int]] = field(default_factory=list)
    outports: dict[str, tuple[str, ...]] = field(default_factory=dict)
    inports: dict[str, dict[str, str]] = field(default_factory=dict)
    shapes: dict[str, RouterShape] = field(default_factory=dict)
    parts: dict[str, str] = field(default_factory=dict)
    header: str = ""

    @property
    def text(self):
        """All modules as one file."""
        return "\n".join([self.header, *self.modules.values()])
