"""One command that brings a device up: its parts in order, their state on disk, answers and report."""
