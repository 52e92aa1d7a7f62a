"""PaddleOCR 3.7 with the same PP-OCRv6 small models on ONNX Runtime: no Paddle, no download.

PaddleOCR reads a model from a folder that holds `inference.onnx` and an `inference.yml`. The
models are in the rapidocr wheel, the description is PaddleX's own.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ingest.ocr.base import OcrLine, Pixels, detection_side_pixels, line_of
from ragplane.core.errors import ConfigError

_DETECTION, _RECOGNITION = "PP-OCRv6_small_det", "PP-OCRv6_small_rec"
_WHEEL_FILES = {
    _DETECTION: "PP-OCRv6_det_small.onnx",
    _RECOGNITION: "PP-OCRv6_rec_small.onnx",
}


@dataclass(frozen=True, slots=True)
class PaddleModels:
    """The folders of the two models."""

    detection: Path
    recognition: Path


def prepare_models(home: Path) -> PaddleModels:
    """The model folders under `home`, made from the rapidocr wheel where they are missing.

    Raises ConfigError where the paddleocr package is not installed.
    """
    build_meta = _meta_builder()
    for name in _WHEEL_FILES:
        folder = _folder(home, name)
        if not folder.exists():
            _make(folder, build_meta(name))
    return PaddleModels(_folder(home, _DETECTION), _folder(home, _RECOGNITION))


def _meta_builder() -> Callable[[str], dict[str, Any]]:
    """PaddleX's own description of a model: how images are prepared, and outputs read."""
    _set_offline()
    try:
        from paddlex.modules.base.utils.pdparams2safetensors import inference_meta
    except ImportError as error:
        raise ConfigError("the OCR engine `paddle` needs the extra ragplane[paddle]") from error
    build: Callable[[str], dict[str, Any]] = inference_meta.build_inference_meta
    return build


def _make(folder: Path, meta: dict[str, Any]) -> None:
    """The folder at once, whole: several processes may start together."""
    import rapidocr

    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent) as scratch:
        made = Path(scratch) / folder.name
        made.mkdir()
        model = made / "inference.onnx"
        shutil.copyfile(Path(rapidocr.__file__).parent / "models" / _WHEEL_FILES[made.name], model)
        if made.name == _RECOGNITION:
            meta["PostProcess"]["character_dict"] = _characters(model)
        description = json.dumps(meta, ensure_ascii=False)  # which is YAML, too
        (made / "inference.yml").write_text(description, encoding="utf-8")
        try:
            made.rename(folder)
        except OSError:
            if not folder.exists():  # else another process was first
                raise


def _characters(model: Path) -> list[str]:
    """The characters that a recognition model tells apart, in the order of its outputs."""
    from onnxruntime import InferenceSession

    known: str = InferenceSession(model).get_modelmeta().custom_metadata_map["character"]
    return known.splitlines()


def _folder(home: Path, name: str) -> Path:
    return home / "models" / "paddleocr" / name


def _set_offline() -> None:
    """Must stand before the first import: the package asks its model hosts at that time."""
    os.environ.setdefault("PADDLE_PDX_DISABLE_MODEL_SOURCE_CHECK", "True")


class PaddleOcrEngine:
    """One per process, on `threads` threads."""

    def __init__(self, threads: int, models: PaddleModels) -> None:
        _set_offline()
        import cv2
        from paddleocr import PaddleOCR

        cv2.setNumThreads(threads)
        self._ocr: Any = PaddleOCR(
            engine="onnxruntime",
            engine_config={"intra_op_num_threads": threads, "inter_op_num_threads": 1},
            device="cpu",
            text_detection_model_name=_DETECTION,
            text_detection_model_dir=str(models.detection),
            text_recognition_model_name=_RECOGNITION,
            text_recognition_model_dir=str(models.recognition),
            text_recognition_batch_size=1,
            use_doc_orientation_classify=False,
            use_doc_unwarping=False,
            use_textline_orientation=False,
        )

    def recognise(self, image: Pixels) -> list[OcrLine]:
        """See OcrEngine."""
        bgr = np.ascontiguousarray(image[:, :, ::-1])
        [found] = self._ocr.predict(
            bgr,
            text_det_limit_type="max",
            text_det_limit_side_len=detection_side_pixels(*image.shape[:2]),
            text_det_box_thresh=0.5,  # this and the next as RapidOCR has them, with its dilation
            text_det_unclip_ratio=2.0,
            text_rec_score_thresh=0.0,  # what is doubtful is the caller's decision
        )
        pieces = zip(found["rec_texts"], found["rec_polys"], found["rec_scores"], strict=True)
        return [line_of(text, box, float(score)) for text, box, score in pieces]
