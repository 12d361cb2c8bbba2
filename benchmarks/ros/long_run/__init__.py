"""Everything at once for an hour: what is lost, what is late, and what memory and processors it takes."""
