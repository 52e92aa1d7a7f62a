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
        from rapidocr.utils.process_img import map_boxes_to_original

        cv2.setNumThreads(threads)
        self._ocr = _load(threads)
        self._detector = self._ocr._load_det_model()
        self._to_original = map_boxes_to_original

    def recognise(self, image: Pixels) -> list[OcrLine]:
        """See OcrEngine."""
        self._detector.limit_side_len = detection_side_pixels(*image.shape[:2])
        bgr = np.ascontiguousarray(image[:, :, ::-1])  # OpenCV's order
        prepared, record = self._ocr.preprocess_img(bgr)
        # Step by step: called as a whole it hides the lines of which it could read nothing.
        found, _, read, _ = self._ocr.run_ocr_steps(prepared, record)
        if found.boxes is None or read.txts is None:
            return []
        boxes = self._to_original(found.boxes, record, *image.shape[:2])
        return [
            line_of(text, corners, float(score))
            for text, corners, score in zip(read.txts, boxes, read.scores, strict=True)
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
