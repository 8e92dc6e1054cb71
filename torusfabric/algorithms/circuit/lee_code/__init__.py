"""Circuit-switched collectives by perfect Lee codes."""

from .plan import LEE_CODE

__all__ = ["LEE_CODE"]
