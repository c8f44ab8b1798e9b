"""`make image` and `make image-lock`: makes the sandbox image by what is possible here, and prints its id.

python sandbox-image/build.py            pull by digest if configured, else the offline recipe
python sandbox-image/build.py --fresh    build every layer anew (and so check that they come out the same)
python sandbox-image/build.py --relock   make packages.lock, requirements.lock, the font list and image.lock anew
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from learngraph_kernel.sandboxd.image.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
