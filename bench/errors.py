"""How far results are from those of a reference."""
import numpy as np


def relative(have, want):
    """The greatest difference, relative to the largest magnitude; infinite where shapes differ, or what is not finite."""
    have, want = np.asarray(have, np.float64), np.asarray(want, np.float64)
    finite = np.isfinite(want)
    if have.shape != want.shape or not np.isfinite(have[finite]).all():
        return np.inf
    if not np.array_equal(have[~finite], want[~finite], equal_nan=True):
        return np.inf
    off = np.abs(have[finite] - want[finite]).max(initial=0)
    return float(off / max(np.abs(want[finite]).max(initial=0), 1e-30))
