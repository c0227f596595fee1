"""Starts the worker, as `ledgermart up` does."""

import os

# Before anything is imported: libraries that start threads by themselves, which a fork would not have, are told not to.
os.environ.update(
    {
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "JE_ARROW_MALLOC_CONF": "background_thread:false",
        "_RJEM_MALLOC_CONF": "background_thread:false",
    }
)

if __name__ == "__main__":
    from pipelines.worker.process import main

    main()
