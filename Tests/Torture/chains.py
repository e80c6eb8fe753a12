"""SIGKILL at every call of a program with middlewares in all three chains, one of which moves the finished files, and then
the same command again: Examples/CustomMiddleware, which has to lie beside fk."""

import random
from pathlib import Path

from points import Outcome, Score
from sandbox import Sandbox
from server import body
from shim import Shim
from sweep import MODES

NAMES = ["empty.0.plain", "small.1024.plain", "endless.150000.chunked", "large.900000.plain"]
RATE = 30_000_000
PROGRAM = "CustomMiddleware"


def missing(fk):
    program = Path(fk).parent / PROGRAM
    return None if program.exists() else f"there is no {program}: swift build -c release --product {PROGRAM}"


class Program(Sandbox):
    """A work path and a destination in which the example runs besides fk. Its files have to end up in `files`."""

    def __init__(self, world, names):
        super().__init__(world.fk, world.server, world.folder, names, RATE)

    def once(self, shim):
        """The example's command, and fk's again afterwards."""
        fk, self.fk = self.fk, str(Path(self.fk).parent / PROGRAM)
        try:
            return self.run("--work-path", self.work, self.files, *self.urls, shim=shim)
        finally:
            self.fk = fk


def point(world, mode, number):
    box = Program(world, NAMES)
    outcome = Outcome(f"{mode}:{number}")
    try:
        shim = Shim(world.library, box.notes, number, mode)
        status, errors = box.once(shim)
        if not shim.has_fired(outcome, status, errors):
            return outcome
        outcome.problems += [f"after the kill: {text}" for text in box.now()]
        again = Shim(world.library, box.notes, slow=True, name="again")
        status, errors = box.once(again)
        if status != 0:
            outcome.problems.append(f"the second time: status {status}: {errors[-300:]}")
        outcome.problems += box.end(links=True)
        left = [str(path.relative_to(box.work)) for path in box.work.rglob("*") if path.name in NAMES]
        outcome.problems += [f"stray in the work path: {name}" for name in left]
        twice = max(0, shim.received + again.received - sum(len(body(name)) for name in NAMES))
        outcome.values["bytes received twice"] = twice
        return outcome
    finally:
        box.close()


def run(runner, options):
    score = Score("chains")
    if options.quick:
        chosen = random.Random(options.seed)
        calls = runner.one(point, "before", 1_000_000).values["calls"]
        runner.all(score, point, [(chosen.choice(MODES), chosen.randint(1, calls)) for _ in range(options.quick_count)])
    else:
        for mode in MODES:
            runner.every_call(score, point, mode)
    yield score


def again(runner, score, text, seed):
    mode, number = text.split(":")
    runner.all(score, point, [(mode, int(number))])
