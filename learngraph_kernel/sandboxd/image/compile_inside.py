"""Runs in a container of the image being built: sources come in (a tar file on stdin), compiled modules go out
(stdout).

The image's root is read-only, so nothing could be compiled later, and without compiled modules each kernel would
spend seconds on it. One process of the image's own interpreter compiles in the order given with a fixed hash seed, so
the bytes are the same every time. `unchecked-hash` files (PEP 552) are loaded without looking at the source again.
"""

import importlib.util
import io
import marshal
import sys
import tarfile

UNCHECKED_HASH = (0b01).to_bytes(4, "little")

with (
    tarfile.open(fileobj=sys.stdin.buffer, mode="r|") as source_tar,
    tarfile.open(fileobj=sys.stdout.buffer, mode="w|", format=tarfile.GNU_FORMAT) as target_tar,
):
    for member in source_tar:
        file = source_tar.extractfile(member)
        if file is None:
            continue
        data = file.read()
        try:
            code = compile(data, "/" + member.name, "exec", dont_inherit=True, optimize=0)
        except (SyntaxError, ValueError):
            continue  # a template or a file for another Python; importing it would fail as well
        folder, _, name = member.name.rpartition("/")
        header = importlib.util.MAGIC_NUMBER + UNCHECKED_HASH + importlib.util.source_hash(data)
        compiled = header + marshal.dumps(code)
        info = tarfile.TarInfo(f"{folder}/__pycache__/{name.removesuffix('.py')}.cpython-311.pyc")
        info.size = len(compiled)
        target_tar.addfile(info, io.BytesIO(compiled))
