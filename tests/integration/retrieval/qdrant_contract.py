"""Qdrant's OpenAPI description, in the form of qdrant-client's own models.

They are generated from the description of the server, and refuse fields that it lacks.
"""

from __future__ import annotations

import re
from typing import Any

from pydantic import BaseModel
from qdrant_client import models

BODIES: tuple[tuple[str, str, type[BaseModel]], ...] = (
    ("PUT", r"/collections/\w+", models.CreateCollection),
    ("PUT", r"/collections/\w+/index\?wait=true", models.CreateFieldIndex),
    ("POST", r"/collections/aliases", models.ChangeAliasesOperation),
    ("PUT", r"/collections/\w+/points\?wait=true", models.PointsList),
    ("POST", r"/collections/\w+/points/delete\?wait=true", models.FilterSelector),
    ("POST", r"/collections/\w+/points", models.PointRequest),
    ("POST", r"/collections/\w+/points/scroll", models.ScrollRequest),
    ("POST", r"/collections/\w+/points/query", models.QueryRequest),
)


def validate(method: str, path: str, body: Any) -> None:
    """Raise ValueError for a body that Qdrant's own description does not have."""
    [model] = [m for way, form, m in BODIES if way == method and re.fullmatch(form, path)]
    model.model_validate(body)
