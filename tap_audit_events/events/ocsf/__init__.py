"""Events as OCSF: API Activity of the Open Cybersecurity Schema Framework."""
