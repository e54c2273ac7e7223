"""Ontologies in OBO: the format of the Gene Ontology and of the Human Phenotype Ontology.

Only what the builders use is read: of each ``[Term]`` its id, name, namespace, alternative ids, whether it is obsolete,
and its ``is_a`` and ``part_of`` parents.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from subgnn.data.real.streaming import numbered_lines
from subgnn.errors import DataError, excerpt


@dataclass(frozen=True, slots=True)
class Term:
    """One term; parents are ids, in the order of the file."""

    id: str
    name: str = ""
    namespace: str = ""
    is_a: tuple[str, ...] = ()
    part_of: tuple[str, ...] = ()
    alt_ids: tuple[str, ...] = ()
    obsolete: bool = False


@dataclass(frozen=True, slots=True)
class Ontology:
    """Terms by id, a directed acyclic graph that points at parents.

    Example:
        >>> leaf, root = Term("X:2", is_a=("X:1",)), Term("X:1")
        >>> sorted(Ontology({"X:1": root, "X:2": leaf}).ancestors(["is_a"])["X:2"])
        ['X:1', 'X:2']
    """

    terms: dict[str, Term]
    version: str = ""

    def merged(self) -> dict[str, str]:
        """Alternative ids, each with the live term it now belongs to."""
        return {other: term.id for term in self.terms.values() if not term.obsolete for other in term.alt_ids}

    def parents(self, term_id: str, relations: Iterable[str] = ("is_a", "part_of")) -> tuple[str, ...]:
        """Live parents by the given relations; one that is in another file is passed over."""
        term = self.terms[term_id]
        given = tuple(p for relation in relations for p in (term.is_a if relation == "is_a" else term.part_of))
        return tuple(dict.fromkeys(p for p in given if p in self.terms and not self.terms[p].obsolete))

    def ancestors(self, relations: Iterable[str] = ("is_a", "part_of")) -> dict[str, frozenset[str]]:
        """For each live term, itself and everything above it.

        Raises:
            DataError: where a term is above itself.
        """
        kinds = tuple(relations)
        found: dict[str, frozenset[str]] = {}
        for start in self.terms:
            if self.terms[start].obsolete or start in found:
                continue
            self._close(start, kinds, found)
        return found

    def _close(self, start: str, kinds: tuple[str, ...], found: dict[str, frozenset[str]]) -> None:
        """Close ``start`` and all above it, parents first, without recursion: ontologies are deep enough to matter."""
        path, on_path = [start], {start}
        while path:
            parents = self.parents(path[-1], kinds)
            ahead = next((p for p in parents if p not in found), None)
            if ahead is None:
                term = path.pop()
                on_path.discard(term)
                found[term] = frozenset({term}).union(*(found[p] for p in parents))
            elif ahead in on_path:
                raise DataError(f"term {ahead} is above itself", where="ontology", hint="is the OBO file whole?")
            else:
                path.append(ahead)
                on_path.add(ahead)


@dataclass(slots=True)
class _Stanza:
    """The term being read."""

    line: int
    id: str = ""
    name: str = ""
    namespace: str = ""
    is_a: list[str] = field(default_factory=list)
    part_of: list[str] = field(default_factory=list)
    alt_ids: list[str] = field(default_factory=list)
    obsolete: bool = False

    def take(self, tag: str, value: str) -> None:
        if tag in ("id", "name", "namespace"):
            setattr(self, tag, value)
        elif tag == "is_a":
            self.is_a.append(value.split()[0] if value else "")
        elif tag == "alt_id":
            self.alt_ids.append(value)
        elif tag == "is_obsolete":
            self.obsolete = value == "true"
        elif tag == "relationship":
            relation, _, target = value.partition(" ")
            if relation == "part_of":
                self.part_of.append(target.split()[0] if target else "")

    def term(self) -> Term:
        parents = tuple(self.is_a), tuple(self.part_of)
        return Term(self.id, self.name, self.namespace, *parents, tuple(self.alt_ids), self.obsolete)


def read_obo(path: Path) -> Ontology:
    """Read an ontology from an OBO file, plain or gzipped.

    Raises:
        DataError: for a file without terms, a term without an id, or two terms of one id.
    """
    terms: dict[str, Term] = {}
    version = ""
    stanza: _Stanza | None = None
    in_header = True

    def finish() -> None:
        if stanza is None:
            return
        if not stanza.id:
            raise DataError("a term without an id", where=f"{path}:{stanza.line}", hint="each [Term] has a line 'id: '")
        if stanza.id in terms:
            raise DataError(f"term {excerpt(stanza.id)} again", where=f"{path}:{stanza.line}", hint="each id once")
        terms[stanza.id] = stanza.term()

    for number, line in numbered_lines(path):
        if line.startswith("["):
            finish()
            in_header = False
            stanza = _Stanza(number) if line.strip() == "[Term]" else None
            continue
        tag, _, rest = line.partition(":")
        # What follows " ! " is a comment for people: the parent's name.
        value = rest.strip() if tag in ("name", "def") else rest.split(" ! ")[0].strip()
        if in_header and tag == "data-version":
            version = value
        elif stanza is not None:
            stanza.take(tag, value)
    finish()
    if not terms:
        raise DataError("no [Term] in it", where=str(path), hint="an ontology in OBO is accepted, such as go-basic.obo")
    return Ontology(terms, version)
