"""Runs points, two at a time, each in a process with a server of its own, and keeps the score."""

import concurrent.futures
import multiprocessing
import sys
import time
import traceback
from dataclasses import dataclass, field


@dataclass
class Outcome:
    point: str
    problems: list = field(default_factory=list)
    #: False: there was no such call any more.
    reached: bool = True
    #: What was measured, by name; the greatest and the mean are shown.
    values: dict = field(default_factory=dict)
    about: str = ""


@dataclass
class Score:
    name: str
    points: int = 0
    failed: list = field(default_factory=list)
    values: dict = field(default_factory=dict)
    seconds: float = 0
    skipped: str = ""

    def add(self, outcome):
        if outcome.reached or outcome.problems:
            self.points += 1
        if outcome.problems:
            self.failed.append(outcome)
        for key, value in outcome.values.items():
            self.values.setdefault(key, []).append(value)

    def measured(self):
        return ", ".join(
            f"{key}: {sum(values) / len(values):,.0f} on average, {max(values):,} at most"
            if len(values) > 1 else f"{key}: {values[0]:,}" for key, values in self.values.items())


world = None


def _begin(make_world):
    global world
    world = make_world()


def _perform(function, arguments):
    try:
        return function(world, *arguments)
    except Exception as error:  # the point failed, not the whole run
        where = traceback.extract_tb(error.__traceback__)[-1]
        return Outcome(str(arguments), [f"the test itself: {error!r} in {where.name}:{where.lineno}"])


class Runner:
    def __init__(self, make_world, jobs, reproduce):
        self.jobs, self.reproduce = jobs, reproduce
        self.pool = concurrent.futures.ProcessPoolExecutor(
            jobs, mp_context=multiprocessing.get_context("fork"), initializer=_begin, initargs=(make_world,))

    def close(self):
        self.pool.shutdown(cancel_futures=True)

    def one(self, function, *arguments):
        return self.pool.submit(_perform, function, arguments).result()

    def all(self, score, function, points, enough=None):
        """Performs every point of an iterable; ends when `enough(outcome)` says so."""
        begin = time.monotonic()
        shown = 0.0
        waiting = set()
        points = iter(points)
        more = True
        while more or waiting:
            while more and len(waiting) < self.jobs:
                point = next(points, None)
                if point is None:
                    more = False
                else:
                    waiting.add(self.pool.submit(_perform, function, point))
            done, waiting = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                outcome = future.result()
                score.add(outcome)
                if outcome.problems:
                    self._tell(score, outcome)
                if enough and enough(outcome):
                    more = False
            if time.monotonic() - shown > (0.5 if sys.stderr.isatty() else 15):
                shown = time.monotonic()
                end = "\r" if sys.stderr.isatty() else "\n"
                print(f"{score.name}: {score.points} points, {len(score.failed)} failed", end=end, file=sys.stderr, flush=True)
        score.seconds += time.monotonic() - begin

    def every_call(self, score, function, *arguments):
        """Performs a point for the first call, the second, and so on, until six in a row were not reached: how many there
        are differs a little from run to run."""
        missed = 0

        def enough(outcome):
            nonlocal missed
            missed = 0 if outcome.reached else missed + 1
            return missed > 5

        self.all(score, function, ((*arguments, number) for number in range(1, 100_000)), enough)

    def sweep(self, score, function, work, modes, options, chosen):
        """Performs a point for every call of a work in every mode; with --quick for some that `chosen` draws."""
        if options.quick:
            calls = max(1, self.one(function, work, "before", 1_000_000).values["calls"])
            each = [(work, chosen.choice(modes), chosen.randint(1, calls)) for _ in range(options.quick_count)]
            self.all(score, function, each)
        else:
            for mode in modes:
                self.every_call(score, function, work, mode)

    def _tell(self, score, outcome):
        print(f"FAILED {score.name} {outcome.point} {outcome.about}")
        for problem in outcome.problems[:12]:
            print(f"   {problem}")
        print(f"   again: {self.reproduce(score.name.split(' ')[0], outcome.point)}", flush=True)
