"""Numbers, tables and charts for people.  Pure."""
