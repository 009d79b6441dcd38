"""The range of the sorted events that a request selects, and the order in which it shows them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Window:
    """The indices from `first` to before `stop`."""

    first: int
    stop: int
    descending: bool

    @property
    def count(self) -> int:
        return self.stop - self.first

    def rank(self, index: int) -> int:
        """The place of an index in the requested order, from 0."""
        return self.stop - 1 - index if self.descending else index - self.first

    def index(self, rank: int) -> int:
        return self.stop - 1 - rank if self.descending else self.first + rank


class Move(NamedTuple):
    """The row at rank `origin` is shown at rank `target`, and the rows between them one earlier."""

    origin: int
    target: int


def placed(moves: Sequence[Move], rank: int) -> int:
    """Where the row of a rank is shown after the moves."""
    for origin, target in moves:
        if rank == origin:
            rank = target
        elif origin < rank <= target:
            rank -= 1
    return rank


def source(moves: Sequence[Move], rank: int) -> int:
    """The rank of the row that is shown at a rank; the inverse of `placed`."""
    for origin, target in reversed(moves):
        if rank == target:
            rank = origin
        elif origin <= rank < target:
            rank += 1
    return rank
