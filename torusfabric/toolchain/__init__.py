"""External tools, the cache, and files; nothing here knows the field."""
