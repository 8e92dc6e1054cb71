"""Circuit-switched broadcast from diagonal to diagonal, or by ever finer levels."""
