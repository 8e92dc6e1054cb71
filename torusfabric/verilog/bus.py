"""What the manifest says of a bus: its protocol, and what lies at which address."""

from dataclasses import asdict
from typing import Any

from ..rtl.bus import DATA_BITS, Bus, Field, Register, RegisterMap, Window

__all__ = ["bus_facts"]


def bus_facts(bus: Bus, register_map: RegisterMap) -> dict[str, Any]:
    """The protocol of a bus, and its registers and windows; offsets and strides count bytes."""
    return {
        "protocol": bus.value,
        "data_width": DATA_BITS,
        "address_unit": bus.address_unit,
        "size": register_map.size,
        "registers": {r.name: _register(r) for r in register_map.registers},
        "windows": {w.name: _window(w) for w in register_map.windows},
    }


def _register(register: Register) -> dict[str, Any]:
    return {
        "offset": register.offset,
        "access": register.access.value,
        "meaning": register.meaning,
        "fields": {field.name: _field(field) for field in register.fields},
    }


def _field(field: Field) -> dict[str, Any]:
    return {name: value for name, value in asdict(field).items() if name not in ("name", "port")}


def _window(window: Window) -> dict[str, Any]:
    return {name: value for name, value in asdict(window).items() if name != "name"}
