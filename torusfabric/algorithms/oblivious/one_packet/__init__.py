"""All-gather of whole messages by fixed forwarding."""

from .plan import ONE_PACKET

__all__ = ["ONE_PACKET"]
