"""The object store over HTTP: what there is, and its content.

boto3 (an extra: `pip install 'ragplane[s3]'`) signs requests and finds credentials, region and
endpoint (AWS_ENDPOINT_URL and the other AWS_* variables) as every tool for S3 does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from ingest.objects.address import Address, is_left_out
from ragplane.core.errors import ConfigError, InputError, Stage, StageError, describe

_CONNECT_TIMEOUT_S = 10
_READ_TIMEOUT_S = 30
_CHUNK_BYTES = 1 << 16  # between two of them, time is looked at
_WRONG_BUCKET = ("NoSuchBucket", "InvalidBucketName")


@dataclass(frozen=True, slots=True)
class ObjectFacts:
    """What a listing says of an object. The ETag is another for other content, and says no more."""

    size_bytes: int
    etag: str | None


class ObjectStore:
    """One client of the store that the environment names. Threads may share it.

    All methods raise StageError, ConfigError where credentials are missing.
    """

    def __init__(self) -> None:
        """Raises ConfigError without boto3, or for an environment that it refuses."""
        try:
            import boto3
            from botocore.config import Config
            from botocore.exceptions import BotoCoreError
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"s3:// needs {error.name}: install it with `pip install 'ragplane[s3]'`"
            ) from error
        config = Config(connect_timeout=_CONNECT_TIMEOUT_S, read_timeout=_READ_TIMEOUT_S)
        try:
            self._client: Any = boto3.session.Session().client("s3", config=config)
        except (BotoCoreError, ValueError) as error:
            raise ConfigError(f"s3://: {describe(error)}") from error

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def look_up(self, address: Address) -> ObjectFacts | None:
        """The object at the address; None if there is none, or none that may be seen."""
        from botocore.exceptions import ClientError

        with _named("list", address):
            try:
                found = self._client.head_object(Bucket=address.bucket, Key=address.key)
            except ClientError as error:
                if _status(error) in (403, 404):
                    return None
                raise
        return ObjectFacts(found["ContentLength"], found.get("ETag"))

    def list(self, folder: Address) -> Iterator[tuple[Address, ObjectFacts]]:
        """Every object below a folder, but for hidden ones, page by page.

        Raises InputError if the bucket does not exist.
        """
        pages = self._client.get_paginator("list_objects_v2")
        with _named("list", folder):
            for page in pages.paginate(Bucket=folder.bucket, Prefix=folder.key):
                # A proxy's greeting would pass for an empty folder.
                if "IsTruncated" not in page:
                    raise StageError("list", "the answer is no listing", document=folder.uri)
                for entry in page.get("Contents", ()):
                    key, size_bytes = entry["Key"], entry["Size"]
                    if not is_left_out(key, size_bytes, folder.key):
                        facts = ObjectFacts(size_bytes, entry.get("ETag"))
                        yield Address(folder.bucket, key), facts
                # The library would end here without a word.
                if page["IsTruncated"] and not page.get("NextContinuationToken"):
                    cause = "the listing breaks off, and does not say how to go on"
                    raise StageError("list", cause, document=folder.uri)

    def sha256(self, address: Address) -> str:
        """The hash of the content, which is fetched for it."""
        digest = hashlib.sha256()
        for chunk in self.read(address):
            digest.update(chunk)
        return digest.hexdigest()

    def read(self, address: Address) -> Iterator[bytes]:
        """The content, piece by piece."""
        with _named("parse", address):
            answer = self._client.get_object(Bucket=address.bucket, Key=address.key)
            with closing(answer["Body"]) as body:
                yield from body.iter_chunks(_CHUNK_BYTES)


@contextmanager
def _named(stage: Stage, address: Address) -> Iterator[None]:
    """Turn the library's errors into ours."""
    from botocore import exceptions

    try:
        yield
    except (exceptions.NoCredentialsError, exceptions.PartialCredentialsError) as error:
        raise ConfigError(f"{address.uri}: {error}") from error
    except exceptions.ClientError as error:
        details = error.response["Error"]
        parts = (details.get("Code"), details.get("Message"))
        cause = ": ".join(filter(None, parts)) or f"HTTP {_status(error)}"
        if stage == "list" and details.get("Code") in _WRONG_BUCKET:
            raise InputError(f"{address.uri}: {cause}") from error
        raise StageError(stage, cause, document=address.uri) from error
    except exceptions.ParamValidationError as error:  # a name that no bucket can have
        raise InputError(f"{address.uri}: {describe(error)}") from error
    except exceptions.BotoCoreError as error:
        raise StageError(stage, describe(error), document=address.uri) from error


def _status(error: Any) -> int:
    """The HTTP status of an answer that is an error."""
    return int(error.response["ResponseMetadata"]["HTTPStatusCode"])
