"""The command line without its start: each command is a process of its own, forked from one that has imported the program.

What starts, stops or imports is tested with real processes; what documents tell a reader to run is mostly starts.
"""

from __future__ import annotations

import atexit
import json
import os
import pkgutil
import select
import socket
import subprocess
import sys
import tempfile
import traceback
from functools import cache
from importlib import import_module
from pathlib import Path

COMMAND = """#!{python} -IS
import json, os, socket, sys
link = socket.socket(socket.AF_UNIX)
link.connect({place!r})
socket.send_fds(link, [b"-"], [0, 1, 2])
link.sendall(json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode())
link.shutdown(socket.SHUT_WR)
sys.exit(int(link.recv(16) or 70))
"""
# These read the environment when they are imported, which is another for each command.
OF_THE_HUB = ("releases.hub", "releases.publish", "releases.snapshot")


@cache
def commands() -> Path:
    """A folder with ``empathy-eval`` in it, for the PATH. What it runs has the folder, environment and streams that it is called with."""
    # The name of a socket is short.
    folder = tempfile.TemporaryDirectory(prefix="warm-")
    place = str(Path(folder.name) / "socket")
    command = Path(folder.name) / "empathy-eval"
    command.write_text(COMMAND.format(python=sys.executable, place=place))
    command.chmod(0o755)
    server = subprocess.Popen([sys.executable, "-P", __file__, place], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def stop() -> None:
        server.communicate()
        folder.cleanup()

    atexit.register(stop)
    assert server.stdout and server.stdout.readline()
    return command.parent


def serve(place: str) -> None:
    """Forks a process for each command, until nobody holds standard input any more."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(place)
        listening.listen()
        _load()
        os.write(1, b"ready\n")
        while listening.fileno() in select.select([listening.fileno(), 0], [], [])[0]:
            link, _ = listening.accept()
            if not os.fork():
                listening.close()
                _run(link)
            link.close()
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


def _load() -> None:
    """Imports the modules of the program, and loads what most of its verbs would load first."""
    import empathy_eval

    for one in pkgutil.walk_packages(empathy_eval.__path__, "empathy_eval."):
        if not one.name.endswith(("__main__", *OF_THE_HUB)):
            import_module(one.name)
    from empathy_eval.completions.models.toxicity_scorer import load_scorer
    from empathy_eval.design.configuration import ToxicityConfig
    from empathy_eval.generation.patterns import load_patterns

    load_scorer(ToxicityConfig("alt-profanity-check", 0.5))(["a text"])
    for name in ("crisis", "pointers", "safety"):
        load_patterns(name)


def _run(link: socket.socket) -> None:
    """Runs the command that is asked for, sends its exit status, and ends the process."""
    from empathy_eval.cli import entry

    streams = socket.recv_fds(link, 1, 3)[1]
    sys.argv, folder, environment = json.loads(b"".join(iter(lambda: link.recv(65536), b"")))
    for place, stream in enumerate(streams):
        os.dup2(stream, place)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    status = 1
    try:
        entry()
    except SystemExit as end:
        status = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    link.sendall(str(status).encode())
    os._exit(status)


if __name__ == "__main__":
    serve(sys.argv[1])
