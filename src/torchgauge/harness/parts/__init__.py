"""A run in parts: groups of one plan that several machines measure, and the one run that is made of them."""
