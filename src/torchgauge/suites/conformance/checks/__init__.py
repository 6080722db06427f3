"""The checks that ship with torchgauge, one module per capability group; only a worker imports them."""
