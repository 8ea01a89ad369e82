"""One BLAS thread in a search, whatever other searches begin and end meanwhile."""

import threading

from threadpoolctl import threadpool_limits

from fairagent.storage.threads import blas_libraries, one_blas_thread


def threads() -> set[int]:
    return {part["num_threads"] for part in blas_libraries().info()}


def test_the_limit_holds_until_the_last_block_ends() -> None:
    with threadpool_limits(2, user_api="blas"):
        before = threads()
        assert before == {2}
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        other = threading.Thread(target=second.__enter__)
        other.start()
        other.join()
        first.__exit__(None, None, None)
        inside = threads()
        second.__exit__(None, None, None)
        assert (inside, threads()) == ({1}, before)
