import hashlib
import os
import time
from pathlib import Path

from ingest.ledger.files import add_hashes, stat_files
from ingest.sources import list_sources


def test_sizes_times_and_hashes_of_a_folder(tmp_path: Path) -> None:
    old, new, gone = (tmp_path / name for name in ("a-old", "b-new", "c-gone"))
    for path in (old, new, gone):
        path.write_text(path.name)
    os.utime(old, ns=(10**18, 10**18))
    os.utime(new, ns=(time.time_ns(), time.time_ns()))
    listing = list_sources([tmp_path])
    gone.unlink()
    stats = stat_files(listing)
    assert [(file.size_bytes, file.mtime_ns) for file in stats.files] == [
        (5, 10**18),
        (5, None),  # it may change again within one tick of the clock
        (0, None),
    ]
    assert stats.complete_folders == (tmp_path.as_uri(),)
    hashed = add_hashes(stats, listing, [new.as_uri(), gone.as_uri()])
    assert [file.sha256 for file in hashed.files] == [
        None,
        hashlib.sha256(b"b-new").hexdigest(),
        None,
    ]
