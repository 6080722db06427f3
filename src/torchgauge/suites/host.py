"""PyTorch's own name of the host, where suites build their models whatever is measured."""

HOST = "cpu"
