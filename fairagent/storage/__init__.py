"""Files and folders that survive a crash, and readers of what others wrote.

What is written appears whole or not at all. What strangers wrote is read in one place: nothing in it can hang,
exhaust or run anything, and everything wrong in it is one line that names the file.
"""
