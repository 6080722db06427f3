"""The toy suite."""
