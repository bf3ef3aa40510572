"""Names for types that many signatures share."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

type Array = NDArray[Any]
type Floats = NDArray[np.float64]
type Named = Mapping[Any, ArrayLike]  # arrays by their names: a dict, or a Dataset
