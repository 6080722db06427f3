"""The one door through which results of jobs come into a store; whatever comes is taken for hostile."""
