"""Labels for documents that have none: made from a few examples, and trusted as far as they go."""
