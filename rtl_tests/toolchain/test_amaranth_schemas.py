"""Commands postpone Amaranth's check of its own schemas."""

import subprocess
import sys

PROGRAM = """
import sys
from torusfabric.toolchain.amaranth_schemas import postpone_schema_checks

postpone_schema_checks()
from amaranth.lib import wiring

assert "rfc3986" not in sys.modules  # what the library needs, and takes long
class Part(wiring.Component):
    word: wiring.Out(8)

found = Part().metadata
assert found.as_json()["interface"]["members"].keys() == {"word"}
assert "rfc3986" in sys.modules
try:
    type(found).validate({"interface": 3})
except wiring.InvalidMetadata:
    print("refused")
"""


def test_metadata_are_checked_all_the_same():
    """The schema library is imported when metadata are checked, and refuses wrong metadata."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("refused\n", "")
