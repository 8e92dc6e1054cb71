"""External tools, their cache, and files; independent of networks and hardware."""
