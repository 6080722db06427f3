"""A campaign from its selection to its rows and the words at its end."""
