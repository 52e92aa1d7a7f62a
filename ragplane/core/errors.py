"""Every error that Ragplane raises on purpose, in one tree.

    RagplaneError
    ├── InputError              the caller's input is wrong             HTTP 400, exit 2
    │   ├── EmptyInputError     an empty text, or no text at all        HTTP 400
    │   ├── LimitError          well formed, but over a stated limit    HTTP 422
    │   ├── ModelNotFoundError  several models, none of that name       HTTP 404
    │   └── TokenizerError      the tokenizer refused the text          HTTP 422
    ├── ConfigError             a setting is wrong or missing           exit 2
    ├── ModelError              a model cannot be loaded or used        HTTP 424
    │   └── NonFiniteError      the model produced NaN or infinity      HTTP 424
    ├── OverloadedError         try again after `retry_after_s`         HTTP 429
    ├── DeadlineError           the caller's deadline cannot be met     HTTP 429
    ├── UnavailableError        a part that is needed is down           HTTP 503
    │   └── BackendDownError    a model's process cannot be started     (serve.backends.base)
    └── StageError              one document failed at one stage; the run goes on
        ├── LeaseLostError      another worker has the document (ingest.ledger.records)
        └── PartDownError       a part that all need stayed down: the run ends
                                (pipelines.ingestion.patience)

The class docstring is the default message. A cause is kept with `raise ... from cause`, and a
message names what failed. The HTTP statuses stand in `serve.http.errors`, the exit codes in
`ragplane.cli`.
"""

from __future__ import annotations

from typing import Literal

Stage = Literal["list", "parse", "ocr", "vlm", "chunk", "embed", "store"]


class RagplaneError(Exception):
    """Something went wrong in Ragplane."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").splitlines()[0])


class InputError(RagplaneError):
    """The input is not usable."""

    def __init__(self, message: str | None = None, *, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


class EmptyInputError(InputError):
    """The input is empty."""


class LimitError(InputError):
    """The input is over a limit."""


class ModelNotFoundError(InputError):
    """No model of that name is served."""


class TokenizerError(InputError):
    """The tokenizer refused the text."""


class ConfigError(RagplaneError):
    """The configuration is not usable."""


class ModelError(RagplaneError):
    """The model cannot be used."""


class NonFiniteError(ModelError):
    """The model produced a value that is not finite."""


class OverloadedError(RagplaneError):
    """The server is overloaded."""

    def __init__(self, message: str | None = None, *, retry_after_s: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class DeadlineError(RagplaneError):
    """The deadline cannot be met."""

    def __init__(self, message: str | None = None, *, retry_after_s: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class UnavailableError(RagplaneError):
    """A part that is needed is not available."""


class StageError(RagplaneError):
    """A document failed at a stage."""

    def __init__(
        self, stage: Stage, cause: str, *, document: str | None = None, page: int | None = None
    ) -> None:
        where = "" if document is None else f" {document}" + (f" page {page}" if page else "")
        super().__init__(f"{stage}:{where} {cause}")
        self.stage = stage
        self.cause = cause
        self.document = document
        self.page = page

    def __reduce__(self) -> tuple[object, ...]:
        # Parser processes send this error to the parent by pickle, which would otherwise call
        # the constructor with the formatted message alone.
        return _rebuild_stage_error, (self.stage, self.cause, self.document, self.page)


def _rebuild_stage_error(
    stage: Stage, cause: str, document: str | None, page: int | None
) -> StageError:
    return StageError(stage, cause, document=document, page=page)


def describe(error: BaseException) -> str:
    """One line for people: the type, the message, and the root cause where that says more."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    cause = error.__cause__
    if cause is None or str(cause) in text:
        return text.splitlines()[0]
    return f"{text.splitlines()[0]} (caused by {describe(cause)})"
