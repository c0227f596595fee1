"""The process that cycles are forked from; `multiprocessing`'s forkserver imports this module once, when it starts."""

from pipelines.worker.cycles import warm_up

warm_up()
