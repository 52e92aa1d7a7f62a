"""What modules.json and the folders that it names say: how token vectors become one vector.

The format is sentence-transformers', in all the forms it has had up to version 6.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragplane.core.errors import ModelError
from ragplane.core.model_files import DenseActivation, DenseLayer, Pooling, SpladeHead

_SEQUENCES = re.compile(
    r"Transformer( Pooling( Dense)*( Normalize)?)?|(MLM)?Transformer SpladePooling"
)
_KNOWN = {"Transformer", "MLMTransformer", "Pooling", "SpladePooling", "Dense", "Normalize"}
_POOLINGS: Mapping[str, Pooling] = {
    "cls": "cls",
    "cls_token": "cls",
    "mean": "mean",
    "mean_tokens": "mean",
    "max": "max",
    "max_tokens": "max",
    "lasttoken": "last-token",
    "weightedmean": "weighted-mean",
    "weightedmean_tokens": "weighted-mean",
    "mean_sqrt_len_tokens": "mean-sqrt-length",
}
_DENSE_ACTIVATIONS: Mapping[str, DenseActivation] = {
    "Identity": "identity",
    "Tanh": "tanh",
    "ReLU": "relu",
    "Sigmoid": "sigmoid",
}
_INPUT = "sentence_embedding"


@dataclass(frozen=True, slots=True)
class Modules:
    """What follows the transformer, whose files lie in `folder`. No pooling: mean."""

    folder: Path
    pooling: Pooling | None = None
    dense: tuple[DenseLayer, ...] = ()
    normalize: bool = True
    splade: SpladeHead | None = None


def read_modules(folder: Path) -> Modules:
    """Read modules.json of a model; a folder without it is a plain transformers model.

    Raises ModelError for a module, an order or an option that is not supported.
    """
    file = folder / "modules.json"
    if not file.is_file():
        return Modules(folder)
    entries = read_json(file, list)
    kinds = [_kind(str(entry["type"])) for entry in entries]
    if not _SEQUENCES.fullmatch(" ".join(kinds)):
        raise ModelError(f"modules in the order {', '.join(kinds)} are not supported")
    paths = [folder / str(entry["path"]) for entry in entries]
    if len(kinds) == 1:
        return Modules(paths[0])
    config = read_json(paths[1] / "config.json", dict, missing_ok=True)
    if kinds[1] == "SpladePooling":
        return Modules(paths[0], splade=_splade(config))
    rest = list(zip(kinds[2:], paths[2:], strict=True))
    return Modules(
        folder=paths[0],
        pooling=_pooling(config),
        dense=tuple(_dense(path) for kind, path in rest if kind == "Dense"),
        normalize=any(_normalizes(path) for kind, path in rest if kind == "Normalize"),
    )


def read_json(file: Path, kind: type[Any], *, missing_ok: bool = False) -> Any:
    """The JSON value in `file`, a dict or a list; an empty one for a file that may be missing.

    Raises ModelError that names the file.
    """
    if missing_ok and not file.is_file():
        return kind()
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{file}: {error}") from error
    if not isinstance(value, kind):
        raise ModelError(f"{file}: expected a JSON {'object' if kind is dict else 'list'}")
    return value


def _kind(type_name: str) -> str:
    package, _, kind = type_name.rpartition(".")
    if kind not in _KNOWN or package.split(".")[0] != "sentence_transformers":
        raise ModelError(f"module {type_name} is not supported")
    return kind


def _pooling(config: Mapping[str, Any]) -> Pooling:
    if not config.get("include_prompt", True):
        raise ModelError("pooling without the prompt (include_prompt false) is not supported")
    modes = config.get("pooling_mode") or [
        key.removeprefix("pooling_mode_")
        for key, value in config.items()
        if key.startswith("pooling_mode_") and value is True
    ]
    modes = [modes] if isinstance(modes, str) else list(modes) or ["mean"]
    if len(modes) > 1 or modes[0] not in _POOLINGS:
        raise ModelError(f"pooling {'+'.join(modes)} is not supported")
    return _POOLINGS[modes[0]]


def _splade(config: Mapping[str, Any]) -> SpladeHead:
    strategy = config.get("pooling_strategy", "max")
    activation = config.get("activation_function", "relu")
    if strategy not in ("max", "sum") or activation not in ("relu", "log1p_relu"):
        raise ModelError(f"SPLADE pooling {strategy} of {activation} is not supported")
    return SpladeHead(strategy, activation)


def _dense(folder: Path) -> DenseLayer:
    config = read_json(folder / "config.json", dict)
    _require_sentence_input("Dense", config)
    name = str(config.get("activation_function", "Tanh")).rsplit(".", 1)[-1]
    if name not in _DENSE_ACTIVATIONS:
        raise ModelError(f"activation {config['activation_function']} of {folder.name} is unknown")
    weights = folder / "model.safetensors"
    require_safetensors(folder, [weights] if weights.is_file() else [])
    return DenseLayer(
        weights=weights,
        outputs=int(config["out_features"]),
        activation=_DENSE_ACTIVATIONS[name],
        residual=bool(config.get("use_residual", False)),
    )


def _normalizes(folder: Path) -> bool:
    _require_sentence_input("Normalize", read_json(folder / "config.json", dict, missing_ok=True))
    return True


def _require_sentence_input(kind: str, config: Mapping[str, Any]) -> None:
    for key in ("module_input_name", "module_output_name"):
        if (config.get(key) or _INPUT) != _INPUT:
            raise ModelError(f"module {kind} with {key} {config[key]} is not supported")


_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")


def require_safetensors(folder: Path, found: Sequence[Path]) -> None:
    """Raise ModelError if no weights were found, naming a pickle that lies there instead."""
    if found:
        return
    pickles = [file.name for pattern in _PICKLES for file in folder.glob(pattern)]
    if pickles:
        raise ModelError(
            f"{pickles[0]} is a pickle, which can run code when opened; "
            "convert the weights to safetensors"
        )
    raise ModelError(f"no weights (*.safetensors) in {folder}")
