"""How fast the tap is, next to other tools: ``make bench``.

`candidates` names what is compared, `measuring` runs and counts, `results` keeps the figures, and
`report` generates the tables and the chart of `docs/performance.md` from them.
"""
