"""Which groups a run measures, in which order and shards, what a budget buys, which models a claim counts."""
