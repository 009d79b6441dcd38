"""Measures the speed and the cost of the tap and of other tools: ``make bench``.

One run measures every candidate in turn against the sandbox and writes `results.json`;
`benchmarks.report` generates `docs/performance.md` and its charts from that file.
"""
