"""The studio: one process that searches, for people in a browser, for programs and for other agents.

`desk` answers requests with one agent; `app` has the pages and the API, `tools` the same for the Model Context
Protocol. A page is a template and a function, registered as one of another package would be.
"""
