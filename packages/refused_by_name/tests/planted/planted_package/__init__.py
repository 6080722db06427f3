"""Refusals by name as people write them; a comment ``planted: N`` stands on the line that has to be found."""
