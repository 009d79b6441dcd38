"""The whole tap in a world of its own: a clock, a service and a target that obey a seed."""
