"""Declarations that the core and its adapters exchange: frozen values, without hardware."""
