"""What chapters, studies and tools share beside the library: settings, data, models, drawing, claims, digests."""

from bookkit import environment as environment  # first: it sets what NumPy and PyTensor read when they load
