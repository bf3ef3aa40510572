"""From a table with groups to predictions: read it, fit a network and its rivals, compare, and advise."""
