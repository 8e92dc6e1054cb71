"""Circuit-switched collectives: rounds of paths."""
