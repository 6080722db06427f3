"""The workers' interpreter: which one, what is in it, and how torchgauge's worker half comes to it."""
