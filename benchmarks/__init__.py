"""How fast the tap is, what it costs, and how others compare: ``make bench``.

One run measures every candidate in turn against the sandbox and writes `results.json`;
`benchmarks.report` generates `docs/performance.md` and its charts from that file.
"""
