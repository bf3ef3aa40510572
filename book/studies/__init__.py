"""Long computations, one module each, whose tables the chapters read. `make studies` runs them, as tasks on Dask.

A study is a module with

- ``CASES``: a list of dicts, the keyword arguments of each row,
- ``compute(**case)``: returns the rest of the row, a dict of numbers,
- ``MEASURED``: True where the rows are seconds and megabytes, which no test compares,

and perhaps

- ``block(case)``: neighbouring cases with one block are one task; default: with one first value,
- ``estimate(case)``: CPU-seconds, for the choice of rows that are computed again,
- ``FIRST``: CPU-seconds that the first row of a process takes on top, for who reads it,
- ``RECOMPUTED``: the cases among which tests choose; default: all of them,
- ``UNCOMPARED``: columns that are not compared, such as seconds,
- ``READS``: what it reads beside tables that it asks for by name: paths in ``book/``,

and its table is ``book/data/<module>.json``: the rows, their digest, and the versions, the commit and the machine that
made them. ``checked`` says under which code, lock and `hbnn.NUMBERS` (`bookkit.versions`) it was made, or some of its
rows were computed again and found to agree (`_checks`); the tests ask that these are the present ones.
"""
