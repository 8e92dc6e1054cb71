"""Circuit-switched collectives: in each round, messages travel along paths held for that round."""
