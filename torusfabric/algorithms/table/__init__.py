"""Translation-invariant schedules: tables."""
