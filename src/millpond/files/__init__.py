"""Files as a source: which there are, what columns they have, and their rows."""
