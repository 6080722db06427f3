"""Months of runs whose tables are a few files together; their journals stay, to make the tables of again."""
