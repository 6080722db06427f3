"""What to implement next on a device: the few operators behind the models that do not run."""
