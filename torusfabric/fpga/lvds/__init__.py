"""Links between boards on differential pairs of an ECP5."""

from .links import LvdsLinks

__all__ = ["LvdsLinks"]
