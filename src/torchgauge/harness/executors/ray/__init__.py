"""Executor ``ray``: agents on the nodes of a Ray cluster start the workers of a plan."""
