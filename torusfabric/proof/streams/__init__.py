"""What is proved of streams: handshakes, and which runs the words of packets belong to."""

from .handshakes import stream_harnesses

__all__ = ["stream_harnesses"]
