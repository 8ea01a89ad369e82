"""Published systems, a folder each: their parts, their kinds of experiments, and a README that maps paper to code.

They are add-ons: each imports `fairagent.extend` and nothing else of fairagent, and comes in by entry points, as a
package of somebody else's would. `rivals` has the re-rankers of other papers, for comparison.
"""
