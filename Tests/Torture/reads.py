"""EIO and EMFILE at every call that opens, lists, reads, locks or looks at a file, by strace."""

import json
import random
import shutil
import subprocess

from points import Outcome, Score
from sandbox import Sandbox, clean_environment

NAMES = ["small.1024.plain", "middle.300000.plain", "other.70000.plain"]
RATE = 40_000_000
CALLS = {
    "openat": ("EIO", "EMFILE"), "getdents64": ("EIO",), "pread64": ("EIO",), "flock": ("EIO",), "newfstatat": ("EIO",),
}
#: Each begins with three complete files in the barrel b.
WORKS = {
    "list": ["list", "--json"],
    "show": ["barrel", "show", "b", "--json"],
    "verify": ["verify", "--all"],
    "repair": ["verify", "--all", "--repair"],
    "refresh": ["barrel", "refresh", "b"],
    "import": ["barrel", "import", "c", "list"],
    "trash": ["trash", "--yes", "URL"],
    "get": ["get", "NEW", "-d", "FILES", "--retry", "0"],
}
NEW = "new.50000.plain"


def missing(fk):
    if not shutil.which("strace"):
        return "strace is not installed"
    done = subprocess.run(["strace", "-f", "-o", "/dev/null", "true"], capture_output=True)
    return None if done.returncode == 0 else "strace may not trace here"


def words(box, work):
    places = {"URL": box.urls[0], "NEW": box.server.url(RATE, NEW), "FILES": str(box.files)}
    return [places.get(word, word) for word in WORKS[work]]


def traced(box, work, options):
    return subprocess.run(
        ["strace", "-f", *options, box.fk, *words(box, work)], cwd=box.base, stdin=subprocess.DEVNULL,
        env=clean_environment(box.work, box.base), capture_output=True, text=True, timeout=60)


def made(world):
    box = Sandbox(world.fk, world.server, world.folder, NAMES, RATE)
    status, errors = box.run("get", "-b", "b", *box.urls, "-d", box.files, "--no-progress")
    assert status == 0, errors
    (box.base / "list").write_text("\n".join([box.urls[0], box.server.url(RATE, NEW)]) + "\n")
    return box


def count(world, work, call):
    """The calls of each kind, and how many come before the first one in the work path."""
    box = made(world)
    try:
        trace = box.base / "trace"
        traced(box, work, ["-o", str(trace), "-e", f"trace={call}"])
        lines = [line for line in trace.read_text(errors="replace").splitlines() if f" {call}(" in line]
        own = (index for index, line in enumerate(lines) if str(box.base) in line)
        outcome = Outcome(f"{work}:{call}")
        outcome.values = {"first": next(own, 0) + 1, "calls": len(lines)}
        return outcome
    finally:
        box.close()


def point(world, work, call, error, number):
    box = made(world)
    outcome = Outcome(f"{work}:{call}:{error}:{number}")
    try:
        # strace injects into calls that it traces, and into no others.
        done = traced(box, work, ["-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={number}"])
        if done.returncode < 0 or done.returncode > 128:
            outcome.problems.append(f"signal: status {done.returncode}: {done.stderr[-300:]}")
        left = NAMES[1:] if work == "trash" else NAMES
        outcome.problems += [f"{name} is gone" for name in left if not (box.files / name).exists()]
        box.names = [*NAMES, NEW]
        outcome.problems += box.wrong_files()
        tasks, problems = box.query("list")
        outcome.problems += problems
        known = {task["url"].rsplit("/", 1)[-1]: task["state"] for task in tasks or []}
        outcome.problems += [f"the task of {name} is lost" for name in left if name not in known]
        if done.returncode == 0:
            outcome.problems += [f"false success: {text}" for text in wrong(box, work, done, known)]
        return outcome
    finally:
        box.close()


def wrong(box, work, done, known):
    # A record that cannot be read is left out with a warning.
    if work == "list" and len(json.loads(done.stdout)) != 3 and "warning: Cannot" not in done.stderr:
        yield f"a list of {len(json.loads(done.stdout))}"
    if work == "show" and len(json.loads(done.stdout)["members"]) != 3 and "warning: Cannot" not in done.stderr:
        yield "a barrel without its members"
    if work == "trash" and (NAMES[0] in known or (box.files / NAMES[0]).exists()):
        yield "the task or its file is there"
    if work == "import" and NEW not in known:
        yield "the new task is missing"
    if work == "get" and not (box.files / NEW).exists():
        yield "the file is missing"
    if work in ("verify", "repair") and not all(known.get(name) == "complete" for name in NAMES):
        yield f"states {known}"


def run(runner, options):
    chosen = random.Random(options.seed)
    for work in WORKS:
        if options.work and work not in options.work:
            continue
        score = Score(f"reads {work}")
        each = []
        for call in [chosen.choice(list(CALLS))] if options.quick else CALLS:
            values = runner.one(count, work, call).values
            # A number counts in each thread for itself.
            for number in range(values.get("first", 1), values.get("calls", 0) + 1):
                each += [(work, call, error, number) for error in CALLS[call]]
        runner.all(score, point, chosen.sample(each, min(len(each), 4)) if options.quick else each)
        yield score


def again(runner, score, text, seed):
    work, call, error, number = text.split(":")
    runner.all(score, point, [(work, call, error, int(number))])
