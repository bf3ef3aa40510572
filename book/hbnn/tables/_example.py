"""A table to try things on."""

import numpy as np
import pandas as pd


def example_frame() -> pd.DataFrame:
    """Sixty invented harvests of wheat in three fields: columns "field", "rain", "wheat", and whether that is "good".

    Examples
    --------
    >>> from hbnn import tables
    >>> tables.example_frame().groupby("field")["wheat"].count().to_dict()
    {'a': 20, 'b': 20, 'c': 20}
    """
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"field": ["a", "b", "c"] * 20, "rain": rng.normal(50, 10, 60)})
    frame["wheat"] = 0.1 * frame["rain"] + 0.3 * rng.normal(size=60)
    return frame.assign(good=np.where(frame["wheat"] > 5, "yes", "no"))
