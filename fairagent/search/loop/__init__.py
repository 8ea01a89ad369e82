"""What a search may do in the light of what it found: loops that refine it, and what they learn from."""
