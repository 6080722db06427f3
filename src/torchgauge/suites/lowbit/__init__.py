"""The suite of low precision in training: optimizers with small states, and products in float8."""
