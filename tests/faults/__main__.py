"""``python tests/faults``: see `faults.plant`."""

import sys
from pathlib import Path

if __name__ == "__main__":
    root = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(root / path) for path in ("book", "book/_ext", "tests")]
    from faults.plant import main

    sys.exit(main())
