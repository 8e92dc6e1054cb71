"""Generator of `torusfabric.core`; FuseSoC runs it with a file of parameters."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

#: Core file that is written beside the Verilog.
CORE = """\
CAPI=2:
name: {vlnv}
filesets:
  rtl:
    files:
      - fabric.v
    file_type: verilogSource-2005
  manifest:
    files:
      - manifest.json
    file_type: user
targets:
  default:
    filesets: [rtl, manifest]
"""


def command_line(parameters: dict[str, Any]) -> list[str]:
    """Return the words of `torusfabric verilog` for some parameters.

    Examples
    --------
    >>> command_line({"topology": "4x4", "collective": "allgather", "max_flits": 8, "signed": True})
    ['verilog', '4x4', 'allgather', '--max-flits', '8', '--signed']
    """
    options = dict(parameters)
    words = ["verilog", *(str(options.pop(name)) for name in ("topology", "collective"))]
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        words += [option] * value if isinstance(value, bool) else [option, str(value)]
    return words


def generate(file: str) -> int:
    """Write Verilog and a core file into the working directory; return the exit status."""
    request = yaml.safe_load(Path(file).read_text(encoding="utf-8"))
    try:
        words = command_line(request["parameters"])
    except KeyError as missing:
        print(f"torusfabric: Parameter {missing} must be given", file=sys.stderr)
        return 1
    Path("fabric.core").write_text(CORE.format(vlnv=request["vlnv"]), encoding="utf-8")
    return subprocess.call([sys.executable, "-m", "torusfabric", *words, "-o", "."])


if __name__ == "__main__":
    sys.exit(generate(sys.argv[1]))
