"""One BLAS thread: the bits of a matrix product depend on the number of threads."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit the BLAS libraries loaded so far, and SciPy's, to one thread; for `with`, or as a decorator."""
    import scipy.linalg  # noqa: F401 - loads the library that numba calls; one loaded later is not limited
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        yield
