"""What people and programs read: tables, plots, the story of a search, its JSON form, and one HTML page for a run.

`page` renders a run with the templates beside it, and loads nothing from elsewhere. `story` explains a trace step by
step, `text` lays it out for a terminal, `record` is its JSON form. Everything shown is cleaned of control characters.
"""
