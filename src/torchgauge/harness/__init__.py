"""The harness: plan, run, watch and fold; its worker half runs in the target interpreter."""
