"""Fair re-rankers by others, with which the product is compared."""
