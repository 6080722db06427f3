"""The suite of language models: what generating text costs, token by token."""
