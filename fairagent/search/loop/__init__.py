"""What a search may do in the light of its first list: loops that refine it, and what they learn from."""
