"""Whose fault an error of PostgreSQL is."""

from __future__ import annotations

import pytest
from psycopg import DataError, Error, InterfaceError, OperationalError, errors

from retrieval.stores.faults import Fault, fault_of

TABLE: dict[Fault, list[type[Error]]] = {
    "document": [
        errors.CardinalityViolation,
        errors.InvalidTextRepresentation,
        errors.NumericValueOutOfRange,
        errors.UntranslatableCharacter,
        errors.StringDataRightTruncation,
        errors.UniqueViolation,
        errors.ForeignKeyViolation,
        errors.CheckViolation,
        errors.ProgramLimitExceeded,
        errors.StatementTooComplex,
        errors.RaiseException,
        errors.WithCheckOptionViolation,
    ],
    "database": [
        errors.ConnectionFailure,
        errors.IdleInTransactionSessionTimeout,
        errors.SerializationFailure,
        errors.DeadlockDetected,
        errors.DiskFull,
        errors.OutOfMemory,
        errors.TooManyConnections,
        errors.LockNotAvailable,
        errors.AdminShutdown,
        errors.CrashShutdown,
        errors.CannotConnectNow,
        errors.QueryCanceled,
        errors.IoError,
        errors.InternalError_,
        errors.DataCorrupted,
        errors.IndexCorrupted,
    ],
    "settings": [
        errors.FeatureNotSupported,
        errors.ReadOnlySqlTransaction,
        errors.InvalidPassword,
        errors.InvalidCatalogName,
        errors.InvalidSchemaName,
        errors.InsufficientPrivilege,
        errors.UndefinedTable,
        errors.UndefinedColumn,
    ],
}


@pytest.mark.parametrize(
    ("kind", "fault"), [(kind, fault) for fault, kinds in TABLE.items() for kind in kinds]
)
def test_a_servers_error_by_its_sqlstate(kind: type[Error], fault: Fault) -> None:
    """Behaviour 25: the true cause is one document's data, the database, or the settings."""
    assert fault_of(kind("no")) == fault


@pytest.mark.parametrize(
    ("kind", "fault"),
    [(DataError, "document"), (OperationalError, "database"), (InterfaceError, "database")],
)
def test_an_error_that_no_server_sent_by_its_type(kind: type[Error], fault: Fault) -> None:
    """psycopg refuses a NUL character before it is sent, and a refused connection has no state."""
    assert fault_of(kind("no")) == fault


def test_every_sqlstate_has_a_place_that_its_class_decides() -> None:
    """One state stands apart from its class: a read-only database does not change by waiting."""
    states = {
        kind.sqlstate
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, Error) and kind.sqlstate
    }
    by_class: dict[str, set[Fault]] = {}
    for state in states - {"25006"}:
        error = Error("no")
        error.sqlstate = state
        by_class.setdefault(state[:2], set()).add(fault_of(error))
    assert len(by_class) > 30
    assert {name for name, faults in by_class.items() if len(faults) > 1} == set()
