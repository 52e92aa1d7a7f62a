"""PP-OCRv6 small on ONNX Runtime, from the rapidocr wheel."""

from __future__ import annotations

from typing import Any

import numpy as np

from ingest.ocr.base import OcrLine, Pixels, detection_side_pixels, line_of

_NO_LIMIT_PIXELS = 1 << 16


class RapidOcrEngine:
    """One per process, on `threads` threads.

    Lines are recognised one at a time: on a CPU a batch wins nothing and pays for the padding to
    its longest line. They are cut from the page as given, not from the smaller image in which
    they are looked for.
    """

    def __init__(self, threads: int) -> None:
        import cv2

        cv2.setNumThreads(threads)
        self._ocr = _load(threads)
        self._detector = self._ocr._load_det_model()

    def recognise(self, image: Pixels) -> list[OcrLine]:
        """See OcrEngine."""
        self._detector.limit_side_len = detection_side_pixels(*image.shape[:2])
        found = self._ocr(np.ascontiguousarray(image[:, :, ::-1]))  # OpenCV's order is BGR
        if found.boxes is None:
            return []
        return [
            line_of(text, corners, float(score))
            for text, corners, score in zip(found.txts, found.boxes, found.scores, strict=True)
            if text.strip()
        ]


def _load(threads: int) -> Any:
    from rapidocr import RapidOCR

    return RapidOCR(
        params={
            "Global.log_level": "error",
            "Global.use_cls": False,
            "Global.text_score": 0.0,  # what is doubtful is the caller's decision
            "Global.max_side_len": _NO_LIMIT_PIXELS,
            "Det.limit_type": "max",
            "Rec.rec_batch_num": 1,
            "EngineConfig.onnxruntime.intra_op_num_threads": threads,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        }
    )
