"""The organization the sandbox serves and the token it takes, where nobody asks for others."""

from typing import Final

ORGANIZATION_ID: Final = "6f1d4c1e-7f0b-4f3a-9d35-0c8a5b1e2d47"
ACCESS_TOKEN: Final = "sandbox_pat_opens-nothing-but-the-sandbox"  # noqa: S105
