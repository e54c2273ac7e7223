"""Write two tables as a bank's analyst may have them: payments over two months, and alerts, of which 2 % are fraud.

    python examples/fraud.py FOLDER [--alerts 3000] [--accounts 4000] [--seed 0] [--by-time | --months]

``payments.csv`` has a line for every payment: source, target, amount, date. ``alerts.csv`` has a line for every account
of an alert: alert, account, label (``fraud`` or ``cleared``), split. The first 70 % of the alerts are train, then 15 %
val, and the last are test. With ``--by-time`` there is also the date of the alert, so that the split is one by time.

With ``--months`` a fifth of the accounts open in February, and each month has a folder: ``january`` the payments and
alerts of January; ``february`` the payments of both months, the first third of February's alerts with their labels
(``labels.csv``), and the others (``alerts.csv``, with the labels as ``outcome``).

Accounts pay a few others again and again over the two months. An alert is raised for accounts that a random walk over
these payments visits, whatever its label, so that no account is suspicious by itself. What is added to them differs:

- fraud: money that moves fast, within three days, in large amounts of similar size: in a ring, or through one account
  that collects from all others and pays the last of them, or pays all;
- cleared, one in five: people who know each other and pay each other small amounts, in both directions, at any time;
- cleared, the others: nothing.

Drawn from a seed with numpy alone; the accounts are invented.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

DAYS, SHARE = 60, 0.02
"""Days from the first payment to the last, and the share of alerts that are fraud."""
_START = np.datetime64("2024-01-01T00:00", "m")
_MINUTES = 24 * 60
FEBRUARY = 31 * _MINUTES
"""The minute at which February begins."""


PAID, ALERTED = ("source", "target", "amount", "date"), ("alert", "account", "label")
"""Titles of the tables."""


@dataclass(slots=True)
class Payments:
    """Payments that are being collected: accounts by number, amounts, and minutes since the start."""

    sources: list[int] = field(default_factory=list)
    targets: list[int] = field(default_factory=list)
    amounts: list[float] = field(default_factory=list)
    minutes: list[int] = field(default_factory=list)

    def add(self, pairs: Iterable[tuple[int, int]], amounts: Iterable[float], minutes: Iterable[int]) -> None:
        """Add payments from the first to the second account of each pair."""
        sources, targets = zip(*pairs, strict=True)
        self.sources += map(int, sources)
        self.targets += map(int, targets)
        self.amounts += map(float, amounts)
        self.minutes += map(int, minutes)

    def rows(self) -> list[tuple[str, str, str, str]]:
        """The lines of the table, by date."""
        order = np.argsort(self.minutes, kind="stable")
        columns = self.sources, self.targets, self.amounts, self.minutes
        lines = zip(*(np.array(column)[order].tolist() for column in columns), strict=True)
        return [(account(u), account(v), f"{amount:.2f}", date(minute)) for u, v, amount, minute in lines]


def account(number: int) -> str:
    """The name of an account."""
    return f"AC{number:05d}"


def date(minute: int) -> str:
    """A date and time in ISO 8601."""
    return str(_START + np.timedelta64(minute, "m"))


def habits(accounts: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Who pays whom regularly: two others each, mostly in the same town of 50 accounts."""
    pairs = set()
    for payer in range(accounts):
        town = payer // 50 * 50
        near = rng.random(2) < 0.85
        others = np.where(near, town + rng.integers(0, 50, 2), rng.integers(0, accounts, 2)) % accounts
        pairs |= {(payer, int(payee)) for payee in others if payee != payer}
    return sorted(pairs)


def walked(start: int, size: int, neighbours: Sequence[Sequence[int]], rng: np.random.Generator) -> list[int]:
    """The first accounts that a random walk visits; it starts again where it has not found enough."""
    found, place = [start], start
    for step in range(40 * size):
        if len(found) == size:
            break
        place = start if step % 20 == 19 else neighbours[place][rng.integers(len(neighbours[place]))]
        if place not in found:
            found.append(place)
    return found


def fast_money(members: Sequence[int], kind: str, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Who pays whom in a fraud, in the order of the payments."""
    order = rng.permutation(members).tolist()
    first, *others = order
    if kind == "ring":
        return list(zip(order, [*others, first], strict=True))
    if kind == "collector":
        return [*((other, first) for other in others[:-1]), (first, others[-1])]
    return [(first, other) for other in others]


def _between(first: np.ndarray, end: int, minutes: np.ndarray) -> np.ndarray:
    """Minutes from 0 to the end, moved to lie between the first and the end."""
    return first + minutes * (end - first) // end


def fraud_tables(
    accounts: int = 4000, alerts: int = 3000, *, seed: int = 0, by_time: bool = False, new: float = 0.0
) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """The lines of payments.csv and of alerts.csv, without titles; a share of ``new`` accounts opens in February."""
    rng, payments = np.random.default_rng(seed), Payments()
    pairs = habits(accounts, rng)
    neighbours: list[list[int]] = [[] for _ in range(accounts)]
    for u, v in pairs:
        neighbours[u].append(v)
        neighbours[v].append(u)
    times = rng.integers(1, 9, len(pairs))
    usual = np.repeat(rng.lognormal(4, 1, len(pairs)), times) * rng.uniform(0.8, 1.2, times.sum())
    opened = np.where(np.random.default_rng([seed, 1]).permutation(accounts) < new * accounts, FEBRUARY, 0)
    first = np.repeat(opened[np.array(pairs)].max(axis=1), times)
    minutes = _between(first, DAYS * _MINUTES, rng.integers(0, DAYS * _MINUTES, times.sum()))
    payments.add(np.repeat(pairs, times, axis=0).tolist(), usual, minutes)
    is_fraud = rng.permutation(alerts) < round(SHARE * alerts)
    raised = np.sort(rng.integers(7 * _MINUTES, DAYS * _MINUTES, alerts))
    splits = np.array(["train", "val", "test"])[np.searchsorted([0.7, 0.85], np.arange(alerts) / alerts, side="right")]
    lines: list[tuple[str, ...]] = []
    for i, minute in enumerate(raised.tolist()):
        while opened[start := int(rng.integers(accounts))] > minute:
            pass
        members = walked(start, int(rng.integers(5, 11)), neighbours, rng)
        members = [member for member in members if opened[member] <= minute]
        if is_fraud[i]:
            moved = fast_money(members, ("ring", "collector", "distributor")[rng.integers(3)], rng)
            gaps = np.sort(rng.integers(0, 3 * _MINUTES, len(moved)))
            payments.add(moved, rng.uniform(900, 1000, len(moved)), minute - 3 * _MINUTES + gaps)
        elif rng.random() < 0.2:
            among = [tuple(rng.permutation(members)[:2].tolist()) for _ in range(len(members) - 1)]
            both = [*among, *((v, u) for u, v in among if rng.random() < 0.5)]
            amounts, first = rng.lognormal(3, 1, len(both)), opened[np.array(both)].max(axis=1)
            payments.add(both, amounts, _between(first, minute, rng.integers(0, minute, len(both))))
        label, split = "fraud" if is_fraud[i] else "cleared", str(splits[i])
        last = (split, date(minute)) if by_time else (split,)
        lines += [(f"alert-{i + 1}", account(member), label, *last) for member in members]
    return payments.rows(), lines


def write_fraud(
    folder: Path, *, accounts: int = 4000, alerts: int = 3000, seed: int = 0, by_time: bool = False
) -> tuple[Path, Path]:
    """Write payments.csv and alerts.csv into a folder."""
    payments, members = fraud_tables(accounts, alerts, seed=seed, by_time=by_time)
    titles = ("alert", "account", "label", "split", *(("date",) if by_time else ()))
    written = folder / "payments.csv", folder / "alerts.csv"
    _write(written[0], PAID, payments)
    _write(written[1], titles, members)
    return written


def write_months(folder: Path, *, accounts: int = 4000, alerts: int = 3000, seed: int = 0) -> list[Path]:
    """Write the tables of January and February into folders of these names."""
    payments, members = fraud_tables(accounts, alerts, seed=seed, by_time=True, new=0.2)
    start = date(FEBRUARY)
    january = [line for line in payments if line[-1] < start]
    known = {name for line in january for name in line[:2]}
    late = list(dict.fromkeys(line[0] for line in members if line[-1] >= start))
    labelled = set(late[: len(late) // 3])
    rows = {
        "january/payments.csv": (PAID, january),
        "january/alerts.csv": (ALERTED, [line[:3] for line in members if line[-1] < start and line[1] in known]),
        "february/payments.csv": (PAID, payments),
        "february/labels.csv": (ALERTED, [line[:3] for line in members if line[0] in labelled]),
        "february/alerts.csv": (
            ("alert", "account", "outcome"),
            [line[:3] for line in members if line[-1] >= start and line[0] not in labelled],
        ),
    }
    for name, (titles, lines) in rows.items():
        _write(folder / name, titles, lines)
    return [folder / name for name in rows]


def _write(path: Path, titles: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([titles, *rows])


def main() -> None:
    """Parse the command line, and write the tables."""
    parser = argparse.ArgumentParser(description="Write payments.csv and alerts.csv, of which 2 % are fraud.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--accounts", type=int, default=4000)
    parser.add_argument("--alerts", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--by-time", action="store_true", help="split by the dates of the alerts, and write these")
    parser.add_argument("--months", action="store_true", help="write January and February apart, with new accounts")
    given = parser.parse_args()
    sizes = {"accounts": given.accounts, "alerts": given.alerts, "seed": given.seed}
    for path in (
        write_months(given.folder, **sizes)
        if given.months
        else write_fraud(given.folder, **sizes, by_time=given.by_time)
    ):
        print(path)


if __name__ == "__main__":
    main()
