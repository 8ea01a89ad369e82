"""Seeded fuzzers: damaged and hostile files, replies and arguments end in a result or in an error of fairagent's own.

`FAIRAGENT_FUZZ_CASES` is how many cases there are in all (200 in `make test`, 100,000 in `make fuzz`). A case depends
on its target's name and its number alone, so that a failure can be had again: `FAIRAGENT_FUZZ=TARGET:NUMBER:1`.
"""
