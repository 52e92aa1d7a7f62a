"""An S3 server in a process of its own on the loopback interface: moto's, watched.

`python s3_server.py` serves on a free port and prints it. `GET /-/requests` gives the requests
since the last such call; `PUT /-/refuse` has requests refused.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

import boto3
import httpx

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

PAGE_KEYS = 3
_ENV = {
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_MAX_ATTEMPTS": "1",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
}


class S3Server:
    """Starts and stops the server."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            env=os.environ | {"MOTO_S3_DEFAULT_MAX_KEYS": str(PAGE_KEYS)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        self.url = f"http://127.0.0.1:{int(self._process.stdout.readline())}"
        self.env = _ENV | {"AWS_ENDPOINT_URL": self.url}
        return self

    def __exit__(self, *failure: object) -> None:
        self._process.kill()
        self._process.communicate()

    def bucket(self) -> Bucket:
        """A new bucket."""
        return Bucket(self)

    def requests(self) -> list[tuple[str, str]]:
        """Methods and targets of the requests since the last call."""
        answer = httpx.get(f"{self.url}/-/requests").raise_for_status()
        return [(method, target) for method, target in answer.json()]

    def refuse(
        self,
        method: str,
        part: str,
        status: int = 403,
        body: str = "<Error><Code>Refused</Code></Error>",
    ) -> None:
        """Answer so to every request with that method and that part in its target; "" to none."""
        rule = {"method": method, "part": part, "status": status, "body": body}
        httpx.put(f"{self.url}/-/refuse", json=rule).raise_for_status()


class Bucket:
    """A bucket of its own for a test."""

    def __init__(self, server: S3Server) -> None:
        self._client: Any = boto3.client(
            "s3",
            endpoint_url=server.url,
            aws_access_key_id="key",
            aws_secret_access_key="secret",
            region_name="us-east-1",
        )
        self.name = f"bucket-{uuid4().hex}"
        self._client.create_bucket(Bucket=self.name)
        self.server = server
        server.requests()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def put(self, **contents: str) -> None:
        """Write objects whose keys are names."""
        for key, content in contents.items():
            self.put_key(key, content)

    def put_key(self, key: str, content: str) -> None:
        """Write an object."""
        self._client.put_object(Bucket=self.name, Key=key, Body=content.encode())

    def put_parts(self, key: str, *parts: bytes) -> None:
        """Write an object by a multipart upload: its ETag is no hash of the content."""
        where = {"Bucket": self.name, "Key": key}
        upload = where | {"UploadId": self._client.create_multipart_upload(**where)["UploadId"]}
        done = [
            {
                "PartNumber": number,
                "ETag": self._client.upload_part(**upload, PartNumber=number, Body=part)["ETag"],
            }
            for number, part in enumerate(parts, 1)
        ]
        self._client.complete_multipart_upload(**upload, MultipartUpload={"Parts": done})

    def move(self, key: str, to: str) -> None:
        """Copy an object and delete the first."""
        source = {"Bucket": self.name, "Key": key}
        self._client.copy_object(Bucket=self.name, Key=to, CopySource=source)
        self.delete(key)

    def delete(self, *keys: str) -> None:
        """Delete objects."""
        for key in keys:
            self._client.delete_object(Bucket=self.name, Key=key)

    def uri(self, rest: str = "") -> str:
        """The address of the bucket, or of something in it."""
        return f"s3://{self.name}/{rest}"

    def fetched(self) -> list[str]:
        """Targets below the bucket whose content was asked for since the last call, in order."""
        start = f"/{self.name}/"
        asked = [target for method, target in self.server.requests() if method == "GET"]
        return [target.removeprefix(start) for target in asked if target.startswith(start)]


class Watched:
    """Counts and refuses requests to an application."""

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application
        self._requests: list[tuple[str, str]] = []
        self._rule: dict[str, Any] = {"part": ""}

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        method, target = environ["REQUEST_METHOD"], environ["REQUEST_URI"]
        if target.startswith("/-/"):
            return self._control(environ, start)
        self._requests.append((method, target))
        rule = self._rule
        if rule["part"] and method == rule["method"] and rule["part"] in target:
            return self._send(start, rule["status"], rule["body"].encode())
        return self._application(environ, start)

    def _control(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] == "PUT":
            self._rule = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
            return self._send(start, 200, b"")
        requests, self._requests = self._requests, []
        return self._send(start, 200, json.dumps(requests).encode())

    @staticmethod
    def _send(start: StartResponse, status: int, body: bytes) -> list[bytes]:
        start(f"{status} Said so", [("Content-Length", str(len(body)))])
        return [body]


def main(say: Callable[[int], None]) -> None:
    """Serve until killed."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    application = Watched(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True)
    say(server.port)
    server.serve_forever()


if __name__ == "__main__":
    main(lambda port: print(port, flush=True))
