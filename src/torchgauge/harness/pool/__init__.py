"""The pool: hosts, their workers, and what becomes of them; for every command that measures."""
