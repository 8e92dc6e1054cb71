"""For a while: the modules of fabrics with streams, whose tables are not yet on the core."""

from types import SimpleNamespace
from typing import Any


#: Whether streams are on the older hardware.
OLD = False


def modules(*, streams: bool) -> Any:
    """Return what makes rooms and images."""
    if streams and OLD:
        from ...planning.forms import resolve_loadable
        from ...program.fitting import loadable_form, loadable_modes
        from ...program.frame import Frame
        from ...rtl.loaded.image import Image, LoadedFabric, read_fabric, read_image

        return SimpleNamespace(
            resolve_loadable=resolve_loadable, loadable_form=loadable_form, Image=Image,
            loadable_modes=loadable_modes, Room=Frame, room_for=Frame.of, read_image=read_image,
            LoadedFabric=LoadedFabric, read_fabric=read_fabric,
        )  # fmt: skip
    from .choose import resolve_loadable
    from .fitting import loadable_form, loadable_modes
    from .image import Image, LoadedFabric, read_fabric, read_image
    from .room import Room, room_for

    return SimpleNamespace(
        resolve_loadable=resolve_loadable, loadable_form=loadable_form, Image=Image,
        loadable_modes=loadable_modes, Room=Room, room_for=room_for, read_image=read_image,
        LoadedFabric=LoadedFabric, read_fabric=read_fabric,
    )  # fmt: skip
