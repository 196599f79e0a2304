"""From raw text to packed, verified Megatron datasets; knows nothing of Dagster."""

import os

# Arrow's own allocator keeps what it freed; the system's gave 30 to 60 MB less at the peak of every stage, as fast.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
