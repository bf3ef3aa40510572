"""What the chapters of this book share beside the library: settings, data, models, drawing, numbers and claims."""

from bookkit import environment as environment  # first: it sets what NumPy and PyTensor read when they load
