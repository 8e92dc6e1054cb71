"""What an adapter in front of a core says of the ports that it gives to the whole."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .registers import RegisterMap

__all__ = ["Interface"]


class Interface(ABC):
    """The outermost ports of a fabric, for manifest, files, bench and proof.

    Attributes
    ----------
    registers : RegisterMap
        What lies at which address.
    """

    registers: RegisterMap

    @abstractmethod
    def facts(self) -> Mapping[str, Any]:
        """Return entries of the manifest."""

    @abstractmethod
    def files(self, top: str, title: str) -> Mapping[str, str]:
        """Return the texts of files that describe the ports, by their names.

        Parameters
        ----------
        top : str
            The name of the top module.
        title : str
            What the fabric is, in a line.
        """

    @abstractmethod
    def bench(self) -> Mapping[str, str | Path]:
        """Return the sources of files of the bench, as `Bench` has them."""

    @abstractmethod
    def harnesses(self, design: Any) -> Iterator[Any]:
        """Yield the harnesses by which modules of the adapter are proved in a `Design`."""

    @abstractmethod
    def assumptions(self) -> Iterator[str]:
        """Yield what is not proved of the adapter, a sentence each."""
