"""What people and programs read of a search: tables, bars, the story of a trace, and its JSON form."""
