"""The Hugging Face suite."""
