"""Word lists and sentence templates of the demo collection, without any logic of their own."""
