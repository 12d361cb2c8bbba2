"""The one name for arrays of floating-point numbers in annotations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
