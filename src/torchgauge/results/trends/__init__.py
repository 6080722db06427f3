"""A series of nights: where its level changed, and what became of each change."""
