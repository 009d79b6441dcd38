"""What each loader does to the hostile events, as written down by hand."""
from collections import defaultdict
from typing import Any
EXPECTED: Any = defaultdict(dict)
