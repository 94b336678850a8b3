"""Files that are whole, hold no code, and know nothing of models."""
