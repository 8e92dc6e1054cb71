"""A fabric on several boards: its blocks of nodes, the links between them, and common starts."""
