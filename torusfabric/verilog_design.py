"""What the Verilog side hands to the synthesis side: module texts and who instantiates whom."""

from dataclasses import dataclass, field

__all__ = ["Design"]


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
    header : str
        Comment above the whole.
    """

    modules: dict[str, str]
    top: str
    instances: dict[str, dict[str, int]]
    classes: list[tuple[str, int]] = field(default_factory=list)
    outports: dict[str, tuple[str, ...]] = field(default_factory=dict)
    header: str = ""

    @property
    def text(self):
        """All modules as one file."""
        return "\n".join([self.header, *self.modules.values()])
