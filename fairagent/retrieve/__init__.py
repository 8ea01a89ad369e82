"""Search engines and what is built on them."""
