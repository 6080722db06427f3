"""Reports of comparisons and runs for people and machines that do not look into the store."""
