"""EM-USER: the workouts of a user of a fitness network; gender (paper, appendix B).

Every record of Endomondo is one workout of one user, so for several users to have completed a workout it must be known
by what they have in common: here its sport and the place where it starts, rounded to a grid. Two workouts are joined
where enough users completed both.

*Differs from the paper:* it does not say what makes two records one workout, and its split, 75/15/15 by workout, sums
to more than all: here users are split 70/15/15, stratified by gender.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.data.real.built import Built, Note, assemble, silent
from subgnn.data.real.co_occurrence import JoinSettings, join_workouts
from subgnn.data.real.settings import at_least, check_fractions, within
from subgnn.data.real.sources import WORKOUTS, SourceFile
from subgnn.data.real.workouts import UNKNOWN, Workout, read_workouts
from subgnn.data.splits import stratified_split
from subgnn.data.strings import NodeNames, Strings
from subgnn.data.subgraphs import SPLITS, SubgraphSet
from subgnn.errors import DataError
from subgnn.rng import stream

Place = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class EmUserSettings:
    """What a workout is, what joins two of them, and who is a subgraph.

    Args:
        decimals: of the degrees of the place where a route starts; 2 is a grid of about a kilometre.
        joining: the edge rule.
        min_workouts: workouts of a user that is a subgraph.
        fractions: of train, val and test.
    """

    decimals: int = 2
    joining: JoinSettings = field(default_factory=JoinSettings)
    min_workouts: int = 3
    fractions: tuple[float, float, float] = (0.7, 0.15, 0.15)

    def __post_init__(self) -> None:
        within(0, 6, decimals=self.decimals)
        at_least(1, min_workouts=self.min_workouts)
        check_fractions(self.fractions)


@dataclass(slots=True)
class _Users:
    """What has been read: gender and workouts of each user, and the record that told the gender."""

    gender: dict[str, str] = field(default_factory=dict)
    told: dict[str, int] = field(default_factory=dict)
    workouts: dict[str, set[Place]] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)
    repeated: int = 0
    without_route: int = 0

    def take(self, workout: Workout, decimals: int, path: Path) -> None:
        if workout.id in self.ids:
            self.repeated += 1
            return
        self.ids.add(workout.id)
        known = self.gender.setdefault(workout.user, workout.gender)
        if UNKNOWN not in (known, workout.gender) and known != workout.gender:
            what = f"user {workout.user} is {workout.gender}, but {known} in record {self.told[workout.user]}"
            raise DataError(what, where=f"{path}: record {workout.record}", hint="one gender a user")
        if workout.gender != UNKNOWN:
            self.gender[workout.user] = workout.gender
            self.told.setdefault(workout.user, workout.record)
        self.without_route += workout.start is None
        self.workouts.setdefault(workout.user, set()).add(_place(workout, decimals))


def _place(workout: Workout, decimals: int) -> Place:
    if workout.start is None:
        return workout.sport, "", ""
    # Adding 0 turns -0.0 into 0.0.
    latitude, longitude = (f"{round(degrees, decimals) + 0.0:.{decimals}f}" for degrees in workout.start)
    return workout.sport, latitude, longitude


def build_em_user(
    records: Path, *, settings: EmUserSettings | None = None, seed: int = 0, note: Note = silent
) -> Built:
    """Build EM-USER.

    Users of unknown gender take part in the graph, but are no subgraphs.

    Args:
        records: Endomondo workouts in the FitRec layout, a record a line.
    """
    settings = settings or EmUserSettings()
    users = _Users()
    for count, workout in enumerate(read_workouts(records)):
        if count % 1000 == 0:
            note(f"reading workouts: {count:,}")
        users.take(workout, settings.decimals, records)
    note("joining workouts")
    everyone = sorted(users.workouts)
    places = sorted({place for found in users.workouts.values() for place in found})
    if not places:
        raise DataError("no workouts", where=str(records), hint="a record a line is needed")
    number = {place: node for node, place in enumerate(places)}
    histories = [np.array(sorted(number[place] for place in users.workouts[user]), np.int64) for user in everyone]
    tails, heads, thinned = join_workouts(histories, len(places), settings.joining, stream(seed, "build/em-user/thin"))
    graph = Graph.from_edges(tails, heads, num_nodes=len(places), names=_names(places))
    subgraphs, dropped = _subgraphs(everyone, users.gender, histories, len(places), settings, seed)
    dropped |= {"repeated records": users.repeated, "edges thinned": thinned}
    return assemble(
        "em-user",
        graph,
        subgraphs,
        titles=None,
        note="Nodes are workouts, known by sport and start; edges join those that several users completed both of, a "
        "subgraph is the workouts of a user, its label the gender. "
        f"{users.without_route:,} records have no route: their workout is known by sport alone. "
        "Not the paper's own file: it does not say what makes two records one workout.",
        sources=[SourceFile(WORKOUTS, (records,))],
        settings=settings,
        seed=seed,
        dropped=dropped,
    )


def _names(places: Sequence[Place]) -> NodeNames:
    columns = {
        "name": [" ".join((sport, latitude, longitude)).strip() for sport, latitude, longitude in places],
        "sport": [sport for sport, _, _ in places],
        "latitude": [latitude for _, latitude, _ in places],
        "longitude": [longitude for _, _, longitude in places],
    }
    return NodeNames({title: Strings.of(column) for title, column in columns.items()}, primary="name")


def _subgraphs(
    everyone: Sequence[str],
    gender: dict[str, str],
    histories: Sequence[NDArray[np.int64]],
    size: int,
    settings: EmUserSettings,
    seed: int,
) -> tuple[SubgraphSet, dict[str, int]]:
    known = [i for i, user in enumerate(everyone) if gender[user] != UNKNOWN]
    kept = [i for i in known if len(histories[i]) >= settings.min_workouts]
    dropped = {"users of unknown gender": len(everyone) - len(known), "users with few workouts": len(known) - len(kept)}
    labels = [gender[everyone[i]] for i in kept]
    if len(set(labels)) < 2:
        what = f"{len(kept)} users are left, of {len(set(labels))} genders"
        raise DataError(what, where="em-user", hint=f"both are needed; dropped: {dropped}")
    codes = np.unique(np.array(labels), return_inverse=True)[1]
    splits = stratified_split(codes, settings.fractions, stream(seed, "build/em-user/split"))
    subgraphs = SubgraphSet.from_lists(
        [histories[i] for i in kept],
        num_nodes=size,
        labels=labels,
        splits=[SPLITS[split] for split in splits],
        names=[everyone[i] for i in kept],
    )
    return subgraphs, dropped
