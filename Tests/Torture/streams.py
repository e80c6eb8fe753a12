"""SIGKILL at every call of `fk cat`: what came out is a true prefix, and the next run of anything in the work path leaves nothing of
the stream.

    one      one connection, a window that the file is larger than
    four     four connections
    several  three files, one of them without a length
    digest   a digest of the whole, compared while the bytes pass
    keep     --keep: the file is a task, which the same command completes
    known    a task that is complete already is read
"""

import hashlib
import random
import subprocess

from points import Outcome, Score
from sandbox import Sandbox
from server import body
from shim import Shim

#: name: (files, options). The window is the least; the large file goes around its ring more than once.
WORKS = {
    "one": (["large.4600000.plain"], ["-x", "1", "--window", "1M"]),
    "four": (["large.4600000.plain"], ["-x", "4", "--window", "1M"]),
    "several": (["small.1024.plain", "endless.150000.chunked", "middle.300000.plain"], []),
    "digest": (["middle.300000.plain"], ["--checksum", "sha-256=" + hashlib.sha256(body("middle.300000.plain")).hexdigest()]),
    "keep": (["large.1400000.plain"], ["--keep", "-x", "1"]),
    "known": (["middle.300000.plain"], []),
}
RATE = 30_000_000
MODES = ("before", "half", "after")


class Reader(Sandbox):
    def __init__(self, world, work):
        names, self.options = WORKS[work]
        super().__init__(world.fk, world.server, world.folder, names, RATE)
        self.work_name = work
        self.whole = b"".join(body(name) for name in names)
        self.kept = names if work in ("keep", "known") else []
        if work == "known":
            status, errors = self.run("get", *self.urls, "-d", self.files, "--no-progress")
            assert status == 0, errors

    def cat(self, shim):
        """(status, standard error, standard output)"""
        words = ["cat", *self.urls, *self.options, *(["-d", self.files] if self.work_name == "keep" else [])]
        with open(self.base / "output", "w+b") as output:
            process = self.start(*words, shim=shim, output=output)
            try:
                _, errors = process.communicate(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                return None, "did not end within 30 s", b""
            output.seek(0)
            return process.returncode, errors, output.read()

    def left(self):
        """What of a stream is there."""
        problems = []
        for path in self.work.rglob("*"):
            inside = path.relative_to(self.work)
            if inside.parts[0] == "streams" or inside.parts[0] == "quarantine" and path.is_file() or path.name.startswith(".tmp-"):
                problems.append(f"left in the work path: {inside}")
        wanted = set(self.kept)
        return problems + [f"left in the folder: {path.name}" for path in self.files.iterdir() if path.name not in wanted]


def point(world, work, mode, number):
    outcome = Outcome(f"{work}:{mode}:{number}")
    box = Reader(world, work)
    try:
        shim = Shim(world.library, box.notes, number, mode)
        status, errors, first = box.cat(shim)
        if not shim.has_fired(outcome, status, errors):
            if first != box.whole:
                outcome.problems.append(f"not killed, and {len(first)} of {len(box.whole)} bytes")
            return outcome
        if not box.whole.startswith(first):
            outcome.problems.append(f"the {len(first)} bytes that came out are no prefix")
        if number % 2:
            # Any command of the work path removes what is left.
            _, said = box.query("list")
            outcome.problems += said
            if work != "keep":
                outcome.problems += [f"after the next command: {text}" for text in box.left()]
        status, errors, second = box.cat(Shim(world.library, box.notes, slow=True, name="again"))
        if status != 0 or second != box.whole:
            outcome.problems.append(
                f"the second time: status {status}, {len(second)} of {len(box.whole)} bytes: {errors[-300:]}")
        outcome.problems += [f"after the second time: {text}" for text in box.left()]
        if box.kept:
            outcome.problems += [f"at the end: {text}" for text in box.end()]
        return outcome
    finally:
        box.close()


def run(runner, options):
    chosen = random.Random(options.seed)
    for work in WORKS:
        if options.work and work not in options.work:
            continue
        score = Score(f"streams {work}")
        runner.sweep(score, point, work, MODES, options, chosen)
        yield score


def again(runner, score, text, seed):
    work, mode, number = text.split(":")
    runner.all(score, point, [(work, mode, int(number))])
