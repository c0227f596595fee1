"""Starts the worker, as `ledgermart up` does."""

import os
import sys

# Before anything is imported: libraries that start threads by themselves, which a fork would not have, are told not to.
os.environ.update(
    {
        "OPENBLAS_NUM_THREADS": "1",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "JE_ARROW_MALLOC_CONF": "background_thread:false",
        "_RJEM_MALLOC_CONF": "background_thread:false",
    }
)
# DuckDB would import it at the first bound parameter, or look for it at each one where it is not installed.
sys.modules["pandas"] = None  # type: ignore[assignment]

if __name__ == "__main__":
    from pipelines.worker.process import main

    main()
