"""Entry point of the worker; `ledgermart up` starts it."""

import os

# Set before any import: these variables keep libraries from starting threads, which a fork would not have.
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
