"""How fast the tap is, and what others need for the same: ``make bench``.

One run measures all candidates in turn against the sandbox and writes `results.json`;
`benchmarks.report` makes `docs/performance.md` and its charts from that file.
"""
