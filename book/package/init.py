"""The part of the book's package that is installed without the book. Unlike there, importing it changes no setting."""

from pathlib import Path

from bnn import report

report.DATA = Path(__file__).resolve().parent / "data"  # here the reference posteriors are inside the package
