"""What chapters, studies and tools share beside the library: settings, data, models, drawing, claims, versions."""

from bookkit import environment as environment  # first: it sets what NumPy and PyTensor read when they load
