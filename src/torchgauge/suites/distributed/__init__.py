"""The suite of several processes: what they say to each other, and models that they compute together."""
