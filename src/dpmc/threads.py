"""One BLAS thread: the bits of a matrix product depend on how many there are."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit every BLAS library to one thread; for `with`, or as a decorator.

    So results typed by hand have the same bits as those of a rule, whose jobs have one thread.
    """
    import scipy.linalg  # noqa: F401 - loads the library that numba calls; one loaded later is not limited
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        yield
