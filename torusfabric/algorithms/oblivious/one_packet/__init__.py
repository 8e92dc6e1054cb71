"""All-gather of whole messages by fixed forwarding."""
