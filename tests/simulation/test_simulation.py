"""Random histories of the whole tap; mutations prove that mistakes are noticed."""

from typing import Any

import pytest

from tests.simulation import joint_mutations, mutations, plan_mutations
from tests.simulation.histories import ENDS, TROUBLES, draw
from tests.simulation.mutations import Mutation
from tests.simulation.play import play

HISTORIES, JOINT_HISTORIES = 50, 25
THREADED_HISTORIES, JOINT_THREADED_HISTORIES = 20, 10
DRAWN = 120
GROUP = 125
HISTORIES_FOR_A_MUTATION = 1500


def play_many(
    histories: int, first: int = 0, *, is_joint: bool = False, uses_threads: bool = False
) -> None:
    for seed in range(first, first + histories):
        play(seed, is_joint=is_joint, uses_threads=uses_threads)


@pytest.mark.parametrize(("histories", "is_joint"), [(HISTORIES, False), (JOINT_HISTORIES, True)])
def test_every_event_arrives_once(histories: int, is_joint: bool) -> None:
    """Histories have ties, late events, faults, kills, changed settings and full memories.

    Joint ones have several organizations, tokens, coverage records and failures of a part.
    """
    play_many(histories, is_joint=is_joint)


@pytest.mark.parametrize(
    ("histories", "is_joint"), [(THREADED_HISTORIES, False), (JOINT_THREADED_HISTORIES, True)]
)
def test_every_event_arrives_once_with_real_threads(histories: int, is_joint: bool) -> None:
    """The order of responses depends on the processor, and each thread ends with its run."""
    play_many(histories, is_joint=is_joint, uses_threads=True)


@pytest.mark.long
@pytest.mark.parametrize("uses_threads", [False, True])
@pytest.mark.parametrize("is_joint", [False, True])
@pytest.mark.parametrize("group", range(3))
def test_every_event_arrives_once_in_more_histories(
    group: int, is_joint: bool, uses_threads: bool
) -> None:
    """The same properties hold for more seeds."""
    play_many(GROUP, HISTORIES + group * GROUP, is_joint=is_joint, uses_threads=uses_threads)


def all_mutations() -> list[Any]:
    return [
        pytest.param(
            mutate,
            module is joint_mutations,
            marks=[] if mutate in module.IMPORTANT else pytest.mark.long,
        )
        for module, is_joint in (
            (mutations, False),
            (plan_mutations, False),
            (joint_mutations, True),
        )
        for mutate in (*module.IMPORTANT, *module.OTHERS)
    ]


@pytest.mark.parametrize(("mutate", "is_joint"), all_mutations())
def test_a_broken_promise_is_noticed(
    mutate: Mutation, is_joint: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The simulation fails for a tap that breaks a promise, and names the seed."""
    mutate(monkeypatch)
    with pytest.raises(AssertionError, match=r"^seed \d+"):
        play_many(HISTORIES_FOR_A_MUTATION, is_joint=is_joint)


@pytest.mark.parametrize("is_joint", [False, True])
def test_a_history_replays(is_joint: bool) -> None:
    """The same seed gives the same history, request by request."""

    def requests() -> list[Any]:
        organizations = play(7, is_joint=is_joint).organizations.values()
        return [
            (each.params, each.seconds, each.status)
            for organization in organizations
            for each in organization.service.requests
        ]

    first = requests()
    assert len(first) > 1
    assert requests() == first


def test_histories_contain_each_kind_of_trouble() -> None:
    """Histories without a kind of trouble would prove nothing about it."""
    histories = [draw(seed) for seed in range(DRAWN)]
    runs = [run for history in histories for run in history.runs]
    settings = {name for run in runs for name in run.settings}
    assert settings >= {"start_date", "end_date", "action_types", "stream_maps", "batch_config"}
    assert {run.end for run in runs} == {None, *ENDS}
    for name in ("skew", "states_back", "ignores_cursor", "empty_cursor", "early_429", "shuffles"):
        assert any(getattr(run, name) for run in runs), name
    for name in ("caps", "displaced_places", "cursor_lifetime"):
        assert any(getattr(history, name) for history in histories), name
    assert max(len(events) for each in histories for events in each.happenings.values()) > 200


def test_joint_histories_contain_each_kind_of_trouble() -> None:
    """They also have runs of one, some and all organizations, and shared tokens."""
    histories = [draw(seed, is_joint=True) for seed in range(DRAWN)]
    runs = [run for history in histories for run in history.runs]
    assert {trouble.kind for run in runs for trouble in run.troubles.values()} == {*TROUBLES}
    assert {run.end for run in runs} == {None, *ENDS}
    for name in ("is_single", "has_coverage"):
        assert {getattr(run, name) for run in runs} == {True, False}, name
    for name in ("stream_maps", "batch_config"):
        assert {name in run.settings for run in runs} == {True, False}, name
    assert {len(set(history.tokens.values())) for history in histories} == {1, 2, 3}
    pairs = [(run, history) for history in histories for run in history.runs]
    assert {len(run.organizations) < len(each.happenings) for run, each in pairs} == {True, False}
