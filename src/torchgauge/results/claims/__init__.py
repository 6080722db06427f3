"""Claims: published sentences about models and devices as questions that a store can answer."""
