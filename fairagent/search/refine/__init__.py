"""Refinement: proposing the next query for an under-exposed group."""
