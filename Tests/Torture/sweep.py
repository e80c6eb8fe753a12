"""SIGKILL at every call that changes something, one after the other, and then the same command again."""

import random

from points import Outcome, Score
from sandbox import Sandbox
from server import body
from shim import Shim

MIXED = ["empty.0.plain", "small.1024.plain", "middle.300000.plain", "endless.150000.chunked"]
LARGE = "large.4600000.plain"
RATE = 30_000_000

#: What one connection may receive twice: a write that was done and not counted.
AGAIN = 64 << 10
INLINE = 256 << 10

#: name: (command, names, connections). The command's files are in the destination, its records in the work path.
WORKS = {
    "get-x1": ("get", MIXED + ["large.1400000.plain"], 1),
    "get-x4": ("get", ["small.1024.plain", LARGE], 4),
    "get-barrel": ("get-barrel", MIXED + ["noetag.900000.noetag"], 1),
    "get-power": ("get-power", MIXED + ["large.700000.plain"], 1),
    "get-links": ("get-links", MIXED, 1),
    "beside-x1": ("beside", MIXED + ["large.1400000.plain"], 1),
    "beside-x4": ("beside", ["small.1024.plain", LARGE], 4),
    "again-x1": ("again", MIXED + ["large.1400000.plain"], 1),
    "again-x4": ("again", ["small.1024.plain", LARGE], 4),
    "create": ("create", MIXED, 1),
    "barrel-x1": ("barrel", MIXED + ["large.1400000.plain"], 1),
    "barrel-x4": ("barrel", ["small.1024.plain", LARGE], 4),
}
#: `half`: a write is torn; `after`: between a call and whatever follows it.
MODES = ("before", "half", "after")


def command(box, kind, connections):
    options = ["-d", box.files, "-j", "4", "-x", connections, "--retry", "1", "--no-progress"]
    match kind:
        case "get" | "get-links" | "again": return ["get", *box.urls, *options]
        # The one that ends last replaces the other's files: each name has one file in the end.
        case "beside": return ["get", *box.urls, *options, "--overwrite"]
        case "get-power": return ["get", *box.urls, *options, "--durability", "power"]
        case "get-barrel": return ["get", "-b", "b", *box.urls, *options]
        case "create": return ["barrel", "create", "b", *box.urls, "-d", box.files]
        case "barrel": return ["barrel", "run", "b", "-j", "4", "-x", connections, "--no-progress"]


def point(world, work, mode, number):
    kind, names, connections = WORKS[work]
    box = Sandbox(world.fk, world.server, world.folder, names, RATE)
    outcome = Outcome(f"{work}:{mode}:{number}")
    try:
        if kind == "barrel":
            status, errors = box.run("barrel", "create", "b", *box.urls, "-d", box.files)
            assert status == 0, errors
        earlier = Shim(world.library, box.notes, 50 + 37 * number % 100, "after", name="earlier")
        if kind == "again":
            # What is swept is the run that goes on after a kill, at one place or another.
            box.run(*command(box, kind, connections), shim=earlier)
            outcome.problems += [f"after the first kill: {text}" for text in box.now()]
        other = ["--work-path", box.base / "other", *command(box, kind, connections)] if kind == "beside" else []
        if other:
            # Another work path has left its parts in the same folder, under the same names.
            box.run(*other, shim=earlier)
            earlier = Shim(world.library, box.notes, name="none")
        links = kind == "get-links"
        shim = Shim(world.library, box.notes, number, mode, links=links)
        status, errors = box.run(*command(box, kind, connections), shim=shim)
        if not shim.has_fired(outcome, status, errors):
            return outcome
        members = names if kind == "barrel" else []
        outcome.problems += [f"after the kill: {text}" for text in box.now(members, "b" if members else None)]
        again = Shim(world.library, box.notes, links=links, slow=True, name="again")
        status, errors = box.run(*command(box, kind, connections), shim=again)
        # A barrel that was there already when the command was killed is the only thing that may be said.
        if status != 0 and not (kind == "create" and "b" in errors and "already" in errors):
            outcome.problems.append(f"the second time: status {status}: {errors[-300:]}")
        if kind == "create":
            status, errors = box.run("barrel", "add", "b", *box.urls)
            status, errors = box.run("barrel", "run", "b", "--no-progress")
            if status != 0:
                outcome.problems.append(f"the barrel's run: status {status}: {errors[-300:]}")
        if other:
            status, errors = box.run(*other)
            if status != 0:
                outcome.problems.append(f"the other work path: status {status}: {errors[-300:]}")
        outcome.problems += box.end("b" if kind in ("barrel", "create", "get-barrel") else None, links)
        if kind != "create":
            sizes = [len(body(name)) for name in names]
            twice = max(0, earlier.received + shim.received + again.received - sum(sizes))
            outcome.values["bytes received twice"] = twice
            # A small file is recorded once it is there, and an endless one cannot be gone on with.
            limit = connections * AGAIN + sum(size for size in sizes if size <= INLINE)
            limit *= 2 if kind == "again" else 1
            if twice > limit:
                outcome.problems.append(f"{twice} bytes were received twice; at most {limit} may be")
        return outcome
    finally:
        box.close()


def run(runner, options):
    chosen = random.Random(options.seed)
    for work in WORKS:
        if options.work and work not in options.work:
            continue
        score = Score(f"sweep {work}")
        runner.sweep(score, point, work, MODES, options, chosen)
        yield score


def again(runner, score, text, seed):
    work, mode, number = text.split(":")
    runner.all(score, point, [(work, mode, int(number))])
