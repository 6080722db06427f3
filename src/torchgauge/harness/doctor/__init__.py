"""Whether a machine is fit to measure on."""
