"""Links between boards on differential pairs of an ECP5."""

from .links import PairLinks
from .lvds import LvdsLinks
from .serdes import SerdesLinks

__all__ = ["LINKS", "LvdsLinks", "PairLinks", "SerdesLinks"]

#: Links by the name of their physical layer.
LINKS: dict[str, type[PairLinks]] = {links.name: links for links in (LvdsLinks, SerdesLinks)}
