"""Writes `* EXCEPT (a)` out: Sail does not have it, but tells what columns a star gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.connect import proto

from millpond.engine.connect.answers import dotted
from millpond.engine.connect.cuts import without_cuts
from millpond.engine.connect.failures import Subject, analysing, find_name
from millpond.engine.connect.plan import ConnectPlan
from millpond.engine.sqltext.binding import quoted
from millpond.engine.sqltext.blocks import outline
from millpond.engine.sqltext.source import Edit, apply_edits
from millpond.engine.sqltext.star_except import StarExcept, star_except_places, star_excepts
from millpond.errors.engine import QueryAnalysisError, UnresolvedColumnError

_SUBJECT = "The query"
_LACKS = "the engine can't tell the columns of this * EXCEPT: name them."


def written_out(sql: Any, named: Sequence[Any], *, plan: ConnectPlan, client: Any) -> str:
    """The text of an SQL relation, with the columns that it gives in the place of `* EXCEPT`.

    Args:
        sql: The relation, part of `plan` over its inputs.
        named: What gives names to relations around it, outermost first.

    Raises:
        MillpondError: A column that is left out is none, or a star can't be written out.
    """
    return _Text(sql, named, plan, client).written_out()


@dataclass(frozen=True)
class _Column:
    """A column that a star gives.

    Attributes:
        qualifier: What has to stand before the name, with its dot.
    """

    name: str
    qualifier: str = ""

    @property
    def text(self) -> str:
        return self.qualifier + quoted(self.name)

    def is_called(self, name: Sequence[str]) -> bool:
        """Whether a name in its parts means the column."""
        *before, last = name
        qualifier = "".join(f"{quoted(part)}." for part in before).lower()
        known = self.qualifier if "`" in self.qualifier else _quoted_parts(self.qualifier)
        return last.lower() == self.name.lower() and known.lower().endswith(qualifier)


def _quoted_parts(qualifier: str) -> str:
    return "".join(f"{quoted(part.strip())}." for part in qualifier.split(".")[:-1])


@dataclass(frozen=True)
class _Text:
    sql: Any
    named: Sequence[Any]
    plan: ConnectPlan
    client: Any

    def written_out(self) -> str:
        text = str(self.sql.query)
        while stars := star_excepts(text):
            # One that stands in what another is over comes first.
            star = next(star for star in stars if not star_excepts(star.query("*")))
            text = apply_edits(text, [Edit(star.start, star.end, self._columns(star))])
        if any(star_except_places(outline(text))):
            raise self._refused(_LACKS)
        return text

    def _names(self, text: str) -> list[str]:
        """The names of the columns of a text in the place of this one."""
        asked = proto.Relation(sql=self.sql)
        asked.sql.query = text
        for around in reversed(self.named):
            outer = proto.Relation(with_relations=around)
            outer.with_relations.root.CopyFrom(asked)
            asked = outer
        with analysing(self.plan):
            names: list[str] = self.client.schema(proto.Plan(root=without_cuts(asked))).names
        return names

    def _columns(self, star: StarExcept) -> str:
        """The columns that a star gives, without those that it leaves out."""
        if not star.source:
            raise self._refused(_LACKS)
        columns = self._given(star)
        left_out = [self._meant(name, columns) for name in star.left_out]
        kept = [column.text for column in columns if column not in left_out]
        if not kept:
            raise self._refused("* EXCEPT leaves no column.")
        return ", ".join(kept)

    def _given(self, star: StarExcept) -> list[_Column]:
        """The columns of a star, by names each of which means one column."""
        names = self._names(star.query(f"{star.qualifier}*"))
        if star.qualifier:
            return [_Column(name, star.qualifier) for name in names]
        is_once = max(Counter(map(str.lower, names)).values(), default=0) < 2
        if is_once and all(len(name) == 1 for name in star.left_out):
            return [_Column(name) for name in names]
        qualifiers = [f"{quoted(table)}." for table in star.tables if table]
        columns = [
            _Column(name, qualifier)
            for qualifier in qualifiers
            for name in self._names(star.query(f"{qualifier}*"))
        ]
        if [column.name for column in columns] != list(names):
            raise self._refused(_LACKS)
        return columns

    def _meant(self, name: tuple[str, ...], columns: Sequence[_Column]) -> _Column:
        """The column that a name in EXCEPT means."""
        found = [column for column in columns if column.is_called(name)]
        written = dotted(name)
        where, caret = find_name(Subject.of_plan(self.plan), name)
        if len(found) > 1:
            problem = f"{written} in * EXCEPT could be several columns: say of which table."
            raise QueryAnalysisError.of(problem, subject=_SUBJECT, where=where, detail=caret or "")
        if not found:
            raise UnresolvedColumnError.of(
                written,
                subject=_SUBJECT,
                known={column.name for column in columns},
                where=where,
                detail=caret,
            )
        return found[0]

    def _refused(self, problem: str) -> QueryAnalysisError:
        """The error for a star, at the first one that leaves columns out."""
        for text in Subject.of_plan(self.plan).texts:
            for start, end in star_except_places(outline(text.text)):
                return QueryAnalysisError.of(
                    problem,
                    subject=_SUBJECT,
                    where=text.locate(start),
                    detail=text.caret(start, end),
                )
        return QueryAnalysisError.of(problem, subject=_SUBJECT, where=self.plan.location, detail="")
