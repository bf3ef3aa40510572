"""Long computations, one module each, whose tables the chapters read. `make studies` runs them.

A study is a module with

- ``CASES``: a list of dicts, the keyword arguments of each row,
- ``compute(**case)``: returns the rest of the row, a dict of numbers,
- ``MEASURED``: True where the rows are seconds and megabytes, which no test compares,

and its table is ``book/data/<module>.json``: the rows, and the versions, the commit and the machine that made them.
"""
