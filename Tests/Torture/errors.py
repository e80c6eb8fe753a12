"""EIO and ENOSPC at every write, sync and change of a name, once and for good, the first time and while recovering."""

import random
import signal

from points import Outcome, Score
from sandbox import Sandbox
from shim import Shim

NAMES = ["empty.0.plain", "small.1024.plain", "middle.300000.plain", "endless.70000.chunked"]
LARGE = ["small.1024.plain", "large.2600000.plain"]
RATE = 40_000_000

#: name: (command, names, connections)
WORKS = {
    "get": ("get", NAMES, 1),
    "get-power": ("get-power", NAMES, 1),
    "barrel": ("barrel", NAMES, 1),
    "barrel-x4": ("barrel", LARGE, 4),
}
STAGES = ("first", "recovery")
#: A run that still waits for room after so many seconds is interrupted.
PATIENCE = 6


def command(box, kind, connections):
    options = ["-j", "4", "-x", connections, "--no-progress"]
    if kind == "barrel":
        return ["barrel", "run", "b", *options]
    durability = ["--durability", "power"] if kind == "get-power" else []
    return ["get", *box.urls, "-d", box.files, "--retry", "1", *options, *durability]


def point(world, work, stage, error, lasts, number):
    kind, names, connections = WORKS[work]
    box = Sandbox(world.fk, world.server, world.folder, names, RATE)
    outcome = Outcome(":".join((work, stage, error, lasts, str(number))))
    barrel = "b" if kind == "barrel" else None
    try:
        if barrel:
            status, errors = box.run("barrel", "create", "b", *box.urls, "-d", box.files, "--retry", "1")
            assert status == 0, errors
        words = command(box, kind, connections)
        if stage == "recovery":
            # Somewhere in the middle, and not always at the same place.
            box.run(*words, shim=Shim(world.library, box.notes, 30 + 7 * number % 60, "after"))
            outcome.problems += [f"after the kill: {text}" for text in box.now(names if barrel else [], barrel)]
        before, _ = box.query("list")
        tasks = [task["url"].rsplit("/", 1)[-1] for task in before or []]
        shim = Shim(world.library, box.notes, number, error, lasts == "on", "disk", name="errors")
        status, errors = box.run(*words, shim=shim, timeout=PATIENCE, then=signal.SIGINT)
        outcome.about = shim.fired or ""
        outcome.values["calls"] = shim.calls
        if shim.fired is None:
            outcome.reached = False
        if status is None or status < 0:
            outcome.problems.append(f"with the error: status {status}: {errors[-300:]}")
        elif status == 0:
            outcome.problems += [f"false success: {text}" for text in failures(box.end(barrel))]
        else:
            outcome.problems += [f"with the error: {text}" for text in failures(box.now(tasks, barrel))]
        if barrel:
            # A barrel's run leaves members alone that have failed for good.
            box.run("barrel", "retry", barrel)
        status, errors = box.run(*words)
        if status != 0:
            outcome.problems.append(f"without the error: status {status}: {errors[-300:]}")
        outcome.problems += failures(box.end(barrel), strays=True)
        return outcome
    finally:
        box.close()


def failures(problems, strays=False):
    """With `Durability.power` a file whose folder cannot be synced loses its name again. A file that could not be
    removed may be there still, as long as it is gone in the end."""
    return [text for text in problems if "was taken away" not in text and (strays or not text.startswith("stray"))]


def run(runner, options):
    chosen = random.Random(options.seed)
    for work in WORKS:
        if options.work and work not in options.work:
            continue
        score = Score(f"errors {work}")
        kinds = [(stage, error, lasts) for stage in STAGES for error in ("EIO", "ENOSPC") for lasts in ("once", "on")]
        if options.quick:
            calls = runner.one(point, work, "first", "EIO", "once", 1_000_000).values["calls"]
            each = [(work, *chosen.choice(kinds), chosen.randint(1, calls)) for _ in range(options.quick_count)]
            runner.all(score, point, each)
        else:
            for kind in kinds:
                runner.every_call(score, point, work, *kind)
        yield score


def again(runner, score, text, seed):
    work, stage, error, lasts, number = text.split(":")
    runner.all(score, point, [(work, stage, error, lasts, int(number))])
