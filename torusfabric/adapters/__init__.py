"""Adapters: capabilities around the core, a folder each."""
