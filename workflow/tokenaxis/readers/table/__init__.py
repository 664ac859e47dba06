"""Delimited tables: what the file looks like (dialect), two ways to parse it (fast, slow), and the log (finish)."""
