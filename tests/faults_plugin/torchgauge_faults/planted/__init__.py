"""Models that silently run by another path than was asked for, each with a clean twin."""
