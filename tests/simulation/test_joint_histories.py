"""Random histories of several organizations; mutations prove that mistakes are noticed."""

import pytest

from tests.simulation.histories import ENDS
from tests.simulation.joint_histories import FAULTS, draw_joint
from tests.simulation.joint_mutations import IMPORTANT, OTHERS
from tests.simulation.mutations import Mutation
from tests.simulation.play_joint import play_joint

HISTORIES = 25
THREADED_HISTORIES = 10
DRAWN = 60
GROUP = 100
LONG_GROUPS = 3
HISTORIES_FOR_A_MUTATION = 800


def play_many(histories: int, first: int = 0, *, uses_threads: bool = False) -> None:
    for seed in range(first, first + histories):
        play_joint(seed, uses_threads=uses_threads)


def test_each_event_of_each_organization_arrives_once() -> None:
    """Histories have failures, kills, tokens, changing organizations and coverage records."""
    play_many(HISTORIES)


def test_each_event_of_each_organization_arrives_once_with_real_threads() -> None:
    """The order of responses depends on the processor, and each thread ends with its run."""
    play_many(THREADED_HISTORIES, uses_threads=True)


@pytest.mark.long
@pytest.mark.parametrize("uses_threads", [False, True])
@pytest.mark.parametrize("group", range(LONG_GROUPS))
def test_each_event_of_each_organization_arrives_once_in_more_histories(
    group: int, uses_threads: bool
) -> None:
    """The same properties hold for more seeds."""
    play_many(GROUP, first=HISTORIES + group * GROUP, uses_threads=uses_threads)


@pytest.mark.parametrize(
    "mutate", [*IMPORTANT, *(pytest.param(each, marks=pytest.mark.long) for each in OTHERS)]
)
def test_a_broken_promise_is_noticed(mutate: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulation fails for a tap that breaks a promise, and names the seed."""
    mutate(monkeypatch)
    with pytest.raises(AssertionError, match=r"^seed \d+: "):
        play_many(HISTORIES_FOR_A_MUTATION)


def test_histories_contain_each_kind_of_trouble() -> None:
    """A history without a kind of trouble proves nothing about it."""
    histories = [draw_joint(seed) for seed in range(DRAWN)]
    runs = [run for joint in histories for run in joint.runs]
    kinds = {trouble.kind for run in runs for trouble in run.troubles.values()}
    assert kinds == set(FAULTS)
    assert {run.planned.end for run in runs} == {None, *ENDS}
    for name in ("is_single", "has_coverage"):
        assert {getattr(run, name) for run in runs} == {True, False}, name
    for name in ("stream_maps", "batch_config"):
        assert {name in run.planned.settings for run in runs} == {True, False}, name
    assert {len(set(joint.tokens.values())) for joint in histories} == {1, 2, 3}
    pairs = [(run, joint) for joint in histories for run in joint.runs]
    assert {len(run.organizations) < len(joint.histories) for run, joint in pairs} == {True, False}
