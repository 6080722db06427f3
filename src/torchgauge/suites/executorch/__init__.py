"""The suite of ExecuTorch: models as programs, and what its delegates take of them."""
