"""DebiasRAG: contexts that are relevant, unlike a library of biased passages, and partly counterfactual.

Source: DebiasRAG (arXiv 2605.16113); its code, prompts and most of its numbers are not published, and all of them are
this project's own here. README.md says what is read how.
"""
