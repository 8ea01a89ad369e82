"""16-bit floats as 32-bit floats: every one of them, bit for bit, without torch."""

from __future__ import annotations

import numpy as np

from fairagent.retrieve.encoded import floats

EVERY = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def test_every_finite_number_bit_for_bit() -> None:
    finite = EVERY[np.isfinite(EVERY)].reshape(-1, 2)
    found = floats(finite)
    assert found.dtype == np.float32
    assert np.array_equal(found.view(np.uint32), finite.astype(np.float32).view(np.uint32))
    # The smallest and the largest of them.
    assert floats(np.array([[6e-8, 65504.0]], dtype=np.float16)).tolist() == [[2.0**-24, 65504.0]]


def test_what_is_not_finite_stays_so() -> None:
    found = floats(EVERY.reshape(256, 256))
    assert np.array_equal(np.isfinite(found), np.isfinite(EVERY).reshape(256, 256))
    assert np.array_equal(found, EVERY.reshape(256, 256).astype(np.float32), equal_nan=True)


def test_any_shape_and_what_may_not_be_written_to() -> None:
    rows = np.ones((4, 6), dtype=np.float16)
    rows.flags.writeable = False
    assert floats(rows[:, ::2]).tolist() == [[1.0] * 3] * 4
    assert floats(rows[:0]).shape == (0, 6)
