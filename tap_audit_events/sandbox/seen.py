"""What the sandbox notes of each request."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class SeenRequest:
    """A request as it came: names of headers in lower case, parameters decoded.

    `number` counts all requests from 1, `seconds` is the service's clock, and `status` what was
    answered, 0 where the connection was reset.
    """

    number: int
    method: str
    path: str
    params: Mapping[str, str]
    headers: Mapping[str, str]
    seconds: float
    status: int = 0

    @property
    def filters(self) -> dict[str, str]:
        """The parameters that must stay the same on every page (interface.md 4.1, rule 4)."""
        return {name: value for name, value in self.params.items() if name != "cursor"}
