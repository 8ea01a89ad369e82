"""Published systems, a folder each: their parts, their kinds of experiments, and a README that maps paper to code.

They are add-ons: their parts and kinds come in by entry points, as those of somebody else's package would, and no room
imports them. `rivals` has the re-rankers of other papers, for comparison.
"""
