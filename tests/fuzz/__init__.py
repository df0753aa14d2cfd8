"""Decoders against mutated recordings."""
