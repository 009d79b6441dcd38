"""The first steps of each command of the package."""

import platform
import subprocess
import sys
import textwrap

import pytest


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has several pools")
@pytest.mark.parametrize("is_tuned", [True, False])
def test_threads_share_one_pool_of_memory(*, is_tuned: bool) -> None:
    """Bodies that several threads read use the memory that others have freed."""
    script = f"""
        import ctypes, threading
        from tap_audit_events.config.process import tune_memory
        if {is_tuned}:
            tune_memory()
        everyone = threading.Barrier(4)
        def read():
            body = bytes(100_000)
            everyone.wait()
        threads = [threading.Thread(target=read) for _ in range(4)]
        for each in threads: each.start()
        for each in threads: each.join()
        ctypes.CDLL(None).malloc_stats()
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    stats = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert "Arena 0:" in stats
    assert ("Arena 1:" in stats) != is_tuned
