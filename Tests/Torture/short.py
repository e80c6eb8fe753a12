"""Every write takes half of what it is given, and every third one is interrupted: nobody may notice."""

from errors import WORKS, command
from points import Outcome, Score
from sandbox import Sandbox
from shim import Shim


def point(world, work):
    kind, names, connections = WORKS[work]
    box = Sandbox(world.fk, world.server, world.folder, names, 0)
    outcome = Outcome(work)
    barrel = "b" if kind == "barrel" else None
    try:
        shim = Shim(world.library, box.notes, short=True)
        if barrel:
            status, errors = box.run("barrel", "create", "b", *box.urls, "-d", box.files, shim=shim)
            assert status == 0, errors
        status, errors = box.run(*command(box, kind, connections), shim=shim)
        if status != 0:
            outcome.problems.append(f"status {status}: {errors[-300:]}")
        outcome.problems += box.end(barrel)
        outcome.values["short writes"] = shim.short_writes
        if not shim.short_writes:
            outcome.problems.append("no write was made short")
        return outcome
    finally:
        box.close()


def run(runner, options):
    score = Score("short")
    runner.all(score, point, [(work,) for work in WORKS])
    yield score


def again(runner, score, text, seed):
    runner.all(score, point, [(text,)])
