"""What can be known of a schedule: whether it is right, how good it is, and what it costs."""
