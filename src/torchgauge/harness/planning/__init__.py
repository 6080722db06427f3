"""Which groups a run measures, in which order, in which shards, and what a budget buys."""
