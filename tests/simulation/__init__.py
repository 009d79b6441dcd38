"""The whole tap in a simulated world: its clock, service and target follow from a seed."""
