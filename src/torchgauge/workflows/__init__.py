"""Continuous integration: what is planned, run, collected, judged and published, on whatever Git host."""
