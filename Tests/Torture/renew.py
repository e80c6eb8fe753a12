"""SIGKILL, EIO and ENOSPC at every call of a repair and of a refresh: each file is the old one or the new one, whole, at any
moment, and the same command succeeds afterwards."""

import os
import random
import signal

from errors import PATIENCE
from points import Outcome, Score
from sandbox import Sandbox
from server import body
from shim import Shim
from sweep import MODES

NAMES = ["small.1024.plain", "large.2600000.plain"]
RATE = 40_000_000
WORKS = {
    "repair": ("verify", "--all", "--repair", "--no-progress"),
    "refresh": ("barrel", "refresh", "b", "--no-progress"),
}
ERRORS = [(error, lasts) for error in ("EIO", "ENOSPC") for lasts in ("once", "on")]


class Finished(Sandbox):
    """A work path whose files are complete. `old` and `new`: their bytes before the command and after it."""

    def __init__(self, world, work):
        super().__init__(world.fk, world.server, world.folder, NAMES, RATE)
        status, errors = self.run("get", "-b", "b", *self.urls, "-d", self.files, "--retry", "1", "--no-progress")
        assert status == 0, errors
        if work == "refresh":
            world.server.version = 1
        else:
            self.damage("large.2600000.plain")
        self.old = {name: (self.files / name).read_bytes() for name in NAMES}
        self.new = {name: body(name, world.server.version) for name in NAMES}
        self.watch.problems()

    def damage(self, name):
        """As a disk does: the time of the last write stays."""
        path = self.files / name
        status = path.stat()
        with open(path, "r+b") as file:
            file.seek(1_200_000)
            file.write(b"damaged")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    def wrong_files(self):
        problems = [f"{name} is nobody's" for name in self.present() if name not in NAMES]
        for name in NAMES:
            path = self.files / name
            if not path.exists():
                problems.append(f"{name} is gone")
            elif (data := path.read_bytes()) not in (self.old[name], self.new[name]):
                problems.append(f"{name} is neither the old file nor the new one: {len(data)} bytes")
        return problems

    def end(self):
        return super().end("b") + [
            f"{name} is still the old one" for name in NAMES if (self.files / name).read_bytes() != self.new[name]]


def point(world, work, action, lasts, number):
    outcome = Outcome(":".join((work, action, lasts, str(number))))
    box = Finished(world, work)
    try:
        isKill = action in MODES
        shim = Shim(world.library, box.notes, number, action, lasts == "on", "all" if isKill else "disk")
        status, errors = box.run(*WORKS[work], shim=shim, timeout=PATIENCE, then=signal.SIGINT)
        if isKill:
            if not shim.has_fired(outcome, status, errors):
                return outcome
        else:
            outcome.about, outcome.reached = shim.fired or "", shim.fired is not None
            outcome.values["calls"] = shim.calls
            if status is None or status < 0:
                outcome.problems.append(f"with the error: status {status}: {errors[-300:]}")
        outcome.problems += [f"after it: {text}" for text in box.now(NAMES, "b")]
        status, errors = box.run(*WORKS[work])
        if status != 0:
            outcome.problems.append(f"the second time: status {status}: {errors[-300:]}")
        # A refresh leaves members alone whose earlier one has failed or was killed.
        box.run("barrel", "retry", "b")
        status, errors = box.run("barrel", "run", "b", "--no-progress")
        if status != 0:
            outcome.problems.append(f"the barrel's run: status {status}: {errors[-300:]}")
        outcome.problems += box.end()
        return outcome
    finally:
        box.close()


def run(runner, options):
    chosen = random.Random(options.seed)
    kinds = [(mode, "once") for mode in MODES] + ERRORS
    for work in WORKS:
        if options.work and work not in options.work:
            continue
        score = Score(f"renew {work}")
        if options.quick:
            calls = runner.one(point, work, "before", "once", 1_000_000).values["calls"]
            each = [(work, *chosen.choice(kinds), chosen.randint(1, calls)) for _ in range(options.quick_count)]
            runner.all(score, point, each)
        else:
            for kind in kinds:
                runner.every_call(score, point, work, *kind)
        yield score


def again(runner, score, text, seed):
    work, action, lasts, number = text.split(":")
    runner.all(score, point, [(work, action, lasts, int(number))])
