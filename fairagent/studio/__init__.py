"""The studio: one process that searches, for people in a browser, for programs and for other agents."""
