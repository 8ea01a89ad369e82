"""Other libraries and servers, each in a module of its own that needs its package only when it is used."""
