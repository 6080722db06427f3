"""Machines beside this one: what they have, who has it, and a job for a scheduler of containers."""
