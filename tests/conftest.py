"""What holds for all tests: nothing is timed, so that a loaded machine fails none of them."""

from hypothesis import settings

settings.register_profile("book", deadline=None)
settings.load_profile("book")
