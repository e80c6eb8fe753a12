"""Memory under valgrind, over thousands of transfers of which one in five fails: nothing is lost that would add up, and no
byte is read or written that is not ours."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from load import FailingServer, write_list
from points import Outcome, Score
from sandbox import clean_environment

TASKS = 10_000
#: What is lost once in a process and not with each transfer, in bytes.
GRACE = 4_096
#: The same of what is only pointed to somewhere inside: what threads at work hold, buffers of digests among it.
POSSIBLE_GRACE = 65_536
#: Reports of valgrind that are no leaks end the process with it.
WRONG = 99


def missing(fk):
    return None if shutil.which("valgrind") else "there is no valgrind"


class Run:
    """One run of fk under valgrind: what it lost."""

    def __init__(self, world, seed, count, outcome):
        base = Path(tempfile.mkdtemp(prefix="leaks.", dir=world.folder))
        server = FailingServer([f"f{number}.bin" for number in range(count)], seed)
        report = base / "report"
        ended = subprocess.run(
            # Undefined values are Swift's to rule out. The tag of an enum may share a byte with bits that nobody writes; the
            # compiler compares the whole byte, which does not depend on them, and valgrind cannot know that.
            ["valgrind", "--leak-check=full", "--errors-for-leak-kinds=none", f"--error-exitcode={WRONG}",
             "--undef-value-errors=no",
             f"--log-file={report}", world.fk, "get", "-i", write_list(base / "list", server), "-d", base / "files", "-j", "32",
             "--retry", "60", "--timeout", "5", "--no-progress", "-q"],
            env=clean_environment(base / "work", base), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=3600)
        text = report.read_text()
        if ended.returncode:
            outcome.problems.append(f"status {ended.returncode}: {ended.stderr[-300:]} {text[-2000:]}")
        for file in server.files.values():
            if (base / "files" / file.name).read_bytes() != file.data:
                outcome.problems.append(f"{file.name} is wrong")
        self.failures = server.failed
        self.lost = self.number(text, "definitely lost") + self.number(text, "indirectly lost")
        self.possible = self.number(text, "possibly lost")
        self.taken = self.number(text, r"total heap usage: [\d,]+ allocs, [\d,]+ frees")
        shutil.rmtree(base)

    @staticmethod
    def number(text, what):
        """The number of bytes behind words of valgrind's report."""
        found = re.search(what + r"[:,] +([\d,]+) bytes", text)
        # "All heap blocks were freed": then there is no summary of what was lost.
        return int(found[1].replace(",", "")) if found else 0


def point(world, seed, count):
    outcome = Outcome(f"{seed}:{count}")
    few, many = (Run(world, seed, number, outcome) for number in (count // 10, count))
    if not many.taken:
        outcome.problems.append("valgrind has said nothing")
    if many.lost > few.lost + GRACE:
        outcome.problems.append(f"{many.lost:,} bytes lost over {count:,} transfers, {few.lost:,} over {count // 10:,}")
    if many.possible > few.possible + POSSIBLE_GRACE:
        outcome.problems.append(
            f"{many.possible:,} bytes perhaps lost over {count:,} transfers, {few.possible:,} over {count // 10:,}")
    outcome.values.update({
        "transfers": count, "failed requests": many.failures, "bytes taken": many.taken, "bytes lost": many.lost,
        "over a tenth of them": few.lost, "perhaps lost": many.possible})
    return outcome


def run(runner, options):
    score = Score("leaks")
    count = options.count or (300 if options.quick else TASKS)
    runner.all(score, point, [(options.seed, count)])
    yield score


def again(runner, score, text, seed):
    runner.all(score, point, [tuple(int(word) for word in text.split(":"))])
