"""Irregular collectives on any network: listed nodes, listed messages, unequal lengths."""
