"""Amaranth's platforms as builds take them: by tools of today, and of families with a flow."""

from typing import Any

__all__ = ["family_fault", "up_to_date"]

#: The place-and-route tool that Amaranth calls for Gowin, which is no more, and its successor.
_FORMER, _TODAY = "nextpnr-gowin", "nextpnr-himbaechel-gowin"

#: The place-and-route tools of families that builds know.
_FLOWS = {"nextpnr-ice40", "nextpnr-ecp5", _TODAY}

#: Amaranth's command of the former tool, with the options of its successor.
_PLACE_AND_ROUTE = rf"""
    {{{{invoke_tool("{_TODAY}")}}}}
        {{{{quiet("--quiet")}}}}
        {{{{get_override("nextpnr_opts")|options}}}}
        --log {{{{name}}}}.tim
        --device {{{{platform.part}}}}
        --vopt family={{{{platform._chipdb_device}}}}
        --vopt cst={{{{name}}}}.cst
        --json {{{{name}}}}.syn.json
        --write {{{{name}}}}.pnr.json
"""


def up_to_date(platform: Any) -> Any:
    """A platform, changed so that it calls tools that there are."""
    if _FORMER in platform.required_tools:
        platform.__class__ = _himbaechel(type(platform))
    return platform


def _himbaechel(base: Any) -> type[Any]:
    """A platform for Gowin with the place-and-route tool of today."""

    class Himbaechel(base):
        @property
        def required_tools(self) -> list[str]:
            """The tools that the build script calls."""
            return [_TODAY if tool == _FORMER else tool for tool in super().required_tools]

        @property
        def command_templates(self) -> list[str]:
            """The commands of the build script, that of place and route replaced."""
            texts: list[str] = super().command_templates
            return [_PLACE_AND_ROUTE if f'"{_FORMER}"' in text else text for text in texts]

    return Himbaechel


def family_fault(name: str, platform: Any) -> str | None:
    """Why no build knows the tools of a platform, or None.

    Parameters
    ----------
    name : str
        Of the board.
    platform : Platform
        As `up_to_date` returns it.
    """
    if not _FLOWS.isdisjoint(platform.required_tools):
        return None
    vendors = (c for c in type(platform).__mro__ if c.__module__.startswith("amaranth.vendor."))
    vendor = next(vendors, type(platform)).__name__.removesuffix("Platform")
    family = getattr(platform, "family", None)
    of = f"{vendor} {family}" if isinstance(family, str) else vendor
    return (
        f"Platform of board {name} must be of iCE40 by IceStorm, ECP5 by Trellis or Gowin by "
        f"Apicula, not of {of} by {getattr(platform, 'toolchain', 'other tools')}"
    )
