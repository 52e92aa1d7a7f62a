"""Whose fault an error of PostgreSQL is: a pure function of its SQLSTATE.

The classes are those of the SQL standard and of PostgreSQL's manual, appendix A.
"""

from __future__ import annotations

from typing import Literal

from psycopg import DataError, Error, IntegrityError

# `document`: what was written, or asked, is refused, and would be again; others are not.
# `database`: it is down, busy, full or broken; the same may work later.
# `settings`: this role, this database or its schema cannot do it, however long one waits.
Fault = Literal["document", "database", "settings"]

_BY_CLASS: dict[str, Fault] = {
    "21": "document",  # cardinality violation: one row given twice
    "22": "document",  # data exception
    "23": "document",  # integrity constraint violation
    "27": "document",  # triggered data change violation
    "38": "document",  # external routine exception
    "39": "document",  # external routine invocation exception
    "2F": "document",  # SQL routine exception
    "44": "document",  # with check option violation
    "54": "document",  # program limit exceeded: too long for an index, a row, a string
    "P0": "document",  # raised by a function, such as an operator's trigger
    "08": "database",  # connection exception
    "25": "database",  # invalid transaction state: it sat idle for too long
    "40": "database",  # transaction rollback: serialization failure, deadlock
    "53": "database",  # insufficient resources: disk, memory, connections
    "55": "database",  # object not in prerequisite state: a lock is not to be had
    "57": "database",  # operator intervention: shutdown, recovery, cancelled
    "58": "database",  # system error, outside of PostgreSQL
    "F0": "database",  # configuration file error
    "XX": "database",  # internal error: corrupted data or index
    "0A": "settings",  # feature not supported
    "28": "settings",  # invalid authorization
    "3D": "settings",  # no such database
    "3F": "settings",  # no such schema
    "42": "settings",  # no such table, column or right
}
_BY_STATE: dict[str, Fault] = {"25006": "settings"}  # the database is read-only


def fault_of(error: Error) -> Fault:
    """Whose fault the error is; of an error that no server sent (no SQLSTATE), by its type.

    Classes that are not listed count as the database's: they say nothing of what was written.
    """
    state = error.sqlstate
    if state is None:  # psycopg could not send it, or could not connect
        return "document" if isinstance(error, DataError | IntegrityError) else "database"
    return _BY_STATE.get(state) or _BY_CLASS.get(state[:2], "database")
