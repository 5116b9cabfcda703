"""Processes to be killed: each is forked from a server that has loaded once what all of them need."""

import multiprocessing
from multiprocessing.context import ForkServerContext

# There is one server for all tests of a process, with what the first of them asks for: so this is what any of them forks.
LOADED = ["tests.doubles.preload", "tests.completions.test_openai_endpoint", "tests.generation.test_build", "tests.raters.test_judging"]


def forkserver() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(LOADED)
    return context
