"""What a call will cost, before it is made."""

from __future__ import annotations

from math import sqrt

_CHARACTERS_PER_TOKEN = 3  # English prose has about 4: estimates err on the dear side
_TEMPLATE_TOKENS = 24  # role marks of two messages, start and end of the image


def scaled_size(
    width_pixels: int, height_pixels: int, max_pixels: int, patch_pixels: int
) -> tuple[int, int]:
    """Width and height that an image is shown at: whole patches, at most `max_pixels`.

    Never enlarged but to fill the last patch; sides are rounded up, or down where that is too
    much, to one patch at least (only a strip thinner than a patch stays over the limit). Qwen-VL's
    own preprocessing then finds nothing left to resize.
    """
    scale = min(1.0, sqrt(max_pixels / (width_pixels * height_pixels)))
    sides = (width_pixels * scale, height_pixels * scale)
    width, height = (-(-side // patch_pixels) * patch_pixels for side in sides)
    if width * height > max_pixels:
        width, height = (max(1, side // patch_pixels) * patch_pixels for side in sides)
    return int(width), int(height)


def visual_tokens(width_pixels: int, height_pixels: int, patch_pixels: int) -> int:
    """Tokens of an image: the patches that cover it, that is, H*W/784 for sides of 28."""
    return -(-width_pixels // patch_pixels) * -(-height_pixels // patch_pixels)


def text_tokens(prompt: str) -> int:
    """An upper estimate of the tokens of an English prompt, the chat template's included."""
    return -(-len(prompt) // _CHARACTERS_PER_TOKEN) + _TEMPLATE_TOKENS
