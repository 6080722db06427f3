"""Root causes: failures of a store clustered by what they have in common, over models and devices."""
