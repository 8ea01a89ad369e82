"""Lucene indexes that Anserini (pyserini) has built, searched as they are: nothing is ever written into them."""
