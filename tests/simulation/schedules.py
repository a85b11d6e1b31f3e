"""Random schedules, as hypothesis draws and shrinks them."""

from hypothesis import strategies as st
from tests.simulation import actions as a
from tests.simulation.play import Schedule

PICKS = st.integers(0, 3)
TOOLS = ("ro", "idem", "rw", "par", "parw", "ask")
WAYS = st.sampled_from(("", "", "", "", "-raise", "-stubborn", "-twice", "-bad"))

CALL = st.builds("{}{}".format, st.sampled_from(TOOLS), WAYS)
CALLS = st.lists(CALL, min_size=1, max_size=4).map(" ".join)
OTHER = st.sampled_from(("text", "wait", "wait", "empty", "cut"))
REPLY = st.one_of(CALLS, CALLS, CALLS, OTHER, st.builds("length {}".format, CALLS))

GO = st.builds(a.Go, PICKS, st.integers(1, 9))
QUIET = st.one_of(
    st.builds(a.Run, st.booleans()),
    st.just(a.Steer()),
    st.just(a.FollowUp()),
    st.just(a.Cancel()),
    st.just(a.Release()),
    st.builds(a.Withdraw, PICKS),
    st.builds(a.Redeliver, PICKS),
    st.builds(a.Resume, st.booleans()),
    st.builds(a.Pause, PICKS),
    st.builds(a.Leave, PICKS),
    st.builds(a.Decide, PICKS),
)
CRASH = st.builds(a.Crash, PICKS)
FAIL = st.builds(a.Fail, PICKS)


def schedules(*, rough: bool) -> st.SearchStrategy[Schedule]:
    """Schedules; rough ones crash processes and fail writes."""
    # Steps before everything else, so that it finds the run at any depth; and a list of
    # lists, because lists alone are mostly short.
    kinds = [QUIET, QUIET, CRASH, FAIL] if rough else [QUIET]
    some = st.lists(st.tuples(GO, st.one_of(*kinds)), max_size=8)
    many = st.lists(some, max_size=6)
    return st.builds(
        lambda entered, then, replies, suspends: Schedule(
            (a.Run(entered), *(one for part in then for pair in part for one in pair)),
            tuple(replies),
            suspends,
        ),
        st.booleans(),
        many,
        st.lists(REPLY, min_size=2, max_size=12),
        st.booleans(),
    )
