"""Other processes: what they are given, what ends them, and what of their words is a secret.

Standard library only, and below every other room: whoever starts a process does so through here.
"""
