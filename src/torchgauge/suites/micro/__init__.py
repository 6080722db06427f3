"""Single operations at sizes that matter, each with the work that one step is known to do."""
