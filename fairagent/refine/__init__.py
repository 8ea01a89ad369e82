"""Refinement: who proposes the next query for an under-exposed group."""
