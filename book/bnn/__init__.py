"""What the chapters of this book share. Data flows down this list: `data`, `models`, `inference`,
`predict`, `diagnose`, `score`, `report`, `claims`, `plots`; a module imports only from those above it."""

from bnn import environment as environment  # first: it sets what NumPy and PyTensor read when they load
