"""Continuous integration: what is planned, run, collected, judged and published, apart from any one forge."""
