"""The operators of PyTorch, each judged on a device against the host with PyTorch's own samples (OpInfo)."""
