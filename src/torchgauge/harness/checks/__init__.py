"""Campaigns of checks and operators, and what is said of them."""
