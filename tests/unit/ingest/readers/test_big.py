"""Big and hostile input is read in linear time: quadratic time would pass the time limit."""

from __future__ import annotations

import pytest

from tests.unit.ingest.conftest import Read
from tests.unit.ingest.readers.archives import packed
from tests.unit.ingest.readers.test_epub import PARTS
from tests.unit.ingest.readers.test_odt import odt

pytestmark = pytest.mark.timeout(60)

N = 20_000
BIG = {
    "empty lines.txt": b"\n \t" * 300_000 + b"end",
    "spaces.txt": b"a\n" + b" " * 2_000_000 + b"end",
    "legacy.txt": "Größe der Tür, sagt Müller. ".encode("cp1252") * 100_000 + b"end",
    "brackets.md": b"[" * N + b" end",
    "links.md": (b"[" * 150 + b"\n\n" + b"![a](" * 150 + b"\n\n") * 100 + b"end",
    "stars.md": b"*a **a " * N + b"end",
    "quotes.md": b"> " * N + b"end",
    "ticks.md": b"` `` " * N + b"end",
    "front matter.md": b"---\n" + b"a: b\n" * N + b"end",
    "table.md": b"|a|b|\n|-|-|\n" + b"|1|2|\n" * N + b"\nend",
    "list.html": b"<html><ol>" + b"<li>a" * N + b"</ol>end",
    "hidden list.html": b"<html><ol>" + b"<li hidden>a" * N + b"</ol>end",
    "table.html": b"<html><table>" + b"<tr><td rowspan=9999>a<td>b" * N + b"</table>end",
    "inline.html": b"<html><p>" + b"<b>a</b> " * N + b"end",
    "rows.csv": b"a,b,c\n" * 100_000 + b"1,2,end\n",
    "quotes.csv": b'a,b\n"' + b"x,y\n" * 100_000 + b"end",
    "columns.csv": b"a," * 200_000 + b"end",
    "records.json": b"[" + b'{"a": 1, "b": {"c": "d"}},' * N + b'{"z": "end"}]',
    "records.jsonl": b'{"a": 1, "b": 2}\n' * N + b'{"a": 1, "b": "end"}',
    "parts.eml": b"Subject: a\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=x\n\n"
    + b"--x\nContent-Type: text/plain\n\na\n" * 3000
    + b"--x\n\nend\n--x--\n",
    "lines.eml": b"Subject: a\nMIME-Version: 1.0\n\n" + b"a line\n\n" * 100_000 + b"end",
    "paragraphs.odt": odt("<text:p>a</text:p>" * N + "<text:p>end</text:p>"),
    "chapter.epub": packed(PARTS | {"OEBPS/text/b two.xhtml": b"<p>" * N + b"end"}),
}


@pytest.mark.parametrize("name", BIG)
def test_big_file_is_read_to_its_end(name: str, read: Read) -> None:
    """Behaviour 10."""
    assert "end" in read(BIG[name], name).pages[-1].text[-500_000:]
