"""All-gathers by fixed forwarding: patterns."""
