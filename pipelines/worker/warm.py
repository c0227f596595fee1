"""The process from which cycles are forked; `multiprocessing`'s forkserver imports this module once, at its start."""

from pipelines.worker.cycles import warm_up

warm_up()
