"""Systems rank documents, and the rankings are judged."""
