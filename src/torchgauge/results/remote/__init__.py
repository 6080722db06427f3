"""Stores in an object store: finished runs are copied there, and read from a copy on this machine."""
