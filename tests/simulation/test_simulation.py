"""Random histories of the whole tap; mutations prove that mistakes are noticed."""

from itertools import pairwise
from typing import Any

import pytest

from tests.simulation.histories import draw
from tests.simulation.mutations import IMPORTANT, OTHERS, Mutation
from tests.simulation.play import play

HISTORIES = 50
THREADED_HISTORIES = 20
DRAWN = 120
GROUP = 125
LONG_GROUPS = 4
LONG_THREADED_GROUPS = 2
HISTORIES_FOR_A_MUTATION = 1500


def play_many(histories: int, first: int = 0, *, uses_threads: bool = False) -> None:
    for seed in range(first, first + histories):
        play(seed, uses_threads=uses_threads)


def test_every_event_arrives_once() -> None:
    """Histories have ties, late events, faults, kills, changed settings and full memories."""
    play_many(HISTORIES)


def test_every_event_arrives_once_with_real_threads() -> None:
    """The order of responses depends on the processor, and each thread ends with its run."""
    play_many(THREADED_HISTORIES, uses_threads=True)


@pytest.mark.long
@pytest.mark.parametrize("group", range(LONG_GROUPS))
def test_every_event_arrives_once_in_more_histories(group: int) -> None:
    """The same properties hold for more seeds."""
    play_many(GROUP, first=HISTORIES + group * GROUP)


@pytest.mark.long
@pytest.mark.parametrize("group", range(LONG_THREADED_GROUPS))
def test_every_event_arrives_once_in_more_histories_with_real_threads(group: int) -> None:
    """The same properties hold for more seeds with threads."""
    play_many(GROUP, first=THREADED_HISTORIES + group * GROUP, uses_threads=True)


@pytest.mark.parametrize(
    "mutate", [*IMPORTANT, *(pytest.param(each, marks=pytest.mark.long) for each in OTHERS)]
)
def test_a_broken_promise_is_noticed(mutate: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulation fails for a tap that breaks a promise, and names the seed."""
    mutate(monkeypatch)
    with pytest.raises(AssertionError, match=r"^seed \d+: "):
        play_many(HISTORIES_FOR_A_MUTATION)


def requests_of(seed: int) -> list[Any]:
    """The requests of a history, with their times and statuses."""
    requests = play(seed).service.requests
    return [(request.params, request.seconds, request.status) for request in requests]


def test_a_history_replays() -> None:
    """The same seed gives the same history, request by request."""
    first = requests_of(7)
    assert len(first) > 1
    assert requests_of(7) == first


def test_histories_contain_each_kind_of_trouble() -> None:
    """Histories without a kind of trouble would prove nothing about it."""
    histories = [draw(seed) for seed in range(DRAWN)]
    runs = [run for history in histories for run in history.runs]
    settings = {name for run in runs for name in run.settings}
    assert settings >= {"start_date", "end_date", "action_types", "stream_maps"}
    for name in ("skew", "states_back", "ignores_cursor", "empty_cursor", "early_429", "shuffles"):
        assert any(getattr(run, name) for run in runs), name
    for name in ("caps", "displaced_places", "cursor_lifetime"):
        assert any(getattr(history, name) for history in histories), name
    assert max(len(history.happenings) for history in histories) > 200


def test_histories_vary_settings_from_run_to_run() -> None:
    """Each setting changes in both directions, and the memory is small in some histories."""
    histories = [draw(seed) for seed in range(DRAWN)]
    changing = [each for each in histories if len({str(run.settings) for run in each.runs}) > 1]
    assert len([each for each in changing if each.caps]) > 10
    for name in ("lookback_seconds", "start_date", "page_size", "concurrency", "action_types"):
        values = [
            [(name in run.settings, run.settings.get(name)) for run in each.runs]
            for each in changing
        ]
        moves = [move for each in values for move in pairwise(each) if move[0] != move[1]]
        assert any(before < after for before, after in moves), name
        assert any(before > after for before, after in moves), name
