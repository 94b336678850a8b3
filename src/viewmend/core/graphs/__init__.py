"""Nearest neighbours, graphs made of them, and labels spread over graphs."""
