"""Which objects there are, below the addresses that a run is given."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field

from ingest.objects.address import Address
from ingest.objects.store import ObjectFacts, ObjectStore
from ragplane.core.errors import InputError, StageError


@dataclass(frozen=True, slots=True)
class ObjectListing:
    """Objects by source URI, the folders that were listed whole, and what could not be listed."""

    objects: Mapping[str, ObjectFacts] = field(default_factory=dict)
    complete_folders: tuple[str, ...] = ()
    errors: tuple[StageError, ...] = ()


def list_objects(addresses: Collection[Address]) -> ObjectListing:
    """List objects, and all that is below folders. A name is an object's, else a folder's.

    Only a "/" at the end tells an empty folder from a wrong name. Raises InputError for a bucket
    or a name that does not exist, ConfigError where boto3 or credentials are missing.
    """
    if not addresses:
        return ObjectListing()
    objects: dict[str, ObjectFacts] = {}
    complete: list[str] = []
    errors: list[StageError] = []
    with closing(ObjectStore()) as store:
        for address in addresses:
            try:
                if not _add_object(store, address, objects):
                    _add_folder(store, address, objects)
                    complete.append(address.as_folder().uri)
            except StageError as error:
                errors.append(error)
    return ObjectListing(dict(sorted(objects.items())), tuple(complete), tuple(errors))


def _add_object(store: ObjectStore, address: Address, objects: dict[str, ObjectFacts]) -> bool:
    facts = None if address.is_folder else store.look_up(address)
    if facts is not None:
        objects[address.uri] = facts
    return facts is not None


def _add_folder(store: ObjectStore, address: Address, objects: dict[str, ObjectFacts]) -> None:
    is_empty = True
    for found, facts in store.list(address.as_folder()):
        objects[found.uri] = facts
        is_empty = False
    if is_empty and not address.is_folder:
        raise InputError(f"{address.uri}: no such object or folder; an empty folder ends in a /")


def hash_objects(sources: Collection[str]) -> dict[str, str]:
    """sha256 of each object that can be fetched."""
    if not sources:
        return {}
    hashes: dict[str, str] = {}
    with closing(ObjectStore()) as store:
        for source in sources:
            with suppress(StageError):  # the parse of this object will name the cause
                hashes[source] = store.sha256(Address.parse(source))
    return hashes
