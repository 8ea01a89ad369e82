"""Re-ranking: the final order of the candidates."""
