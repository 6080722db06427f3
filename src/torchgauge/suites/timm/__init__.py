"""The timm suite."""
