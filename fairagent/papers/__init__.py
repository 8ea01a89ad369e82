"""Published systems beside the product, each an add-on: its parts, its kind of experiment, its prompts."""
