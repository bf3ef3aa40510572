"""What the Makefile calls: a command each, `python -m tools.<name>`; they import from the book, never from `tests`."""
