"""Lists and spellings in the sentences of errors."""

import difflib
import math
from collections.abc import Iterable


def join(words: Iterable[str], limit: int = 20) -> str:
    """Say "a", "a and b", "a, b and c", or how many more there are beyond a limit."""
    words = list(words)
    if len(words) > limit:
        words = [*words[:limit], f"{len(words) - limit:,} more"]
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def guess(name: str, names: Iterable[str]) -> str:
    """Ask for the nearest spelling, where one is near."""
    names = list(names)
    alike = [other for other in names if other.casefold() == name.casefold()]
    near = alike or difflib.get_close_matches(name, names, n=1)
    return f". Did you mean {near[0]!r}?" if near else ""


def plus_minus(value: float, error: float) -> str:
    """Say a value and its error, the error rounded to two digits and the value to the same place: "95.20 ± 0.31"."""
    if not (math.isfinite(value) and math.isfinite(error) and error >= 0):
        raise ValueError(f"value={value}, error={error}; wanted: finite numbers, error not below 0")
    places = 1 - math.floor(math.log10(error)) if error > 0 else 3
    places = min(max(places, 0), 15)  # a float has no more
    error = max(error, 10.0**-places) if error > 0 else error  # not read as exact
    return f"{value:.{places}f} ± {error:.{places}f}"
