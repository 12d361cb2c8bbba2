"""A motion that comes sample by sample, against the polynomial that it is."""

from functools import partial

import numpy as np
from refusals import refused

from hodyn_ros.control.predictive_control import MotionPreview

QUARTICS = np.polynomial.Polynomial([0.3, -1.0, 2.0, 4.0, -7.0]), np.polynomial.Polynomial([1.0, 2.0])


def exactly(t: float) -> np.ndarray:
    return np.array([[p.deriv(k)(t) if k else p(t) for p in QUARTICS] for k in range(5)])


def test_between_samples_a_quartic_comes_out_as_it_is() -> None:
    preview = MotionPreview(2)
    for k in range(400):
        preview.add(0.01 * k, exactly(0.01 * k))
    for t in (3.0, 3.0049, 3.0051, 3.9935, 4.008):
        np.testing.assert_allclose(preview.sample(t, 3), exactly(t)[:4], rtol=1e-10, atol=1e-9)


def test_where_no_sample_is_near_nothing_is_said() -> None:
    preview = MotionPreview(2)
    refused(lambda: preview.sample(0.0, 2), "no sample")
    for k in range(400):
        preview.add(0.01 * k, exactly(0.01 * k))
    for t in (-0.5, 0.0, 4.02):  # the first ones are forgotten by now
        refused(partial(preview.sample, t, 2), "within 0.02 s of")
