"""PDF behind one seam: what a page holds, what of it is hidden, and what was measured on it."""
