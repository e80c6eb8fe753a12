#!/usr/bin/env python3
"""Simulates a long list that many machines fetch in shards: how even the parts are, how long the last one takes, what
failures cost. It fetches nothing and needs only Python. Docs/Clusters.md has what follows from it.

    simulate.py [--files 1000000] [--machines 100] [--seed 1]
"""

import argparse
import hashlib
import heapq
import math
import random


def shard_of(url, count):
    """The rule of fk: the first 16 digits of the task's id, scaled to the number of shards."""
    return int.from_bytes(hashlib.sha256(url.encode()).digest()[:8], "big") * count >> 64


def spread(values):
    mean = sum(values) / len(values)
    return f"smallest {min(values) / mean:.3f}, largest {max(values) / mean:.3f} of the mean"


def balance(files, counts, chance):
    print("How even are the parts? Files of one size, and sizes of a data set (log-normal, sigma 1.5).")
    sizes = [chance.lognormvariate(0, 1.5) for _ in range(files)]
    for count in counts:
        number, size = [0] * count, [0.0] * count
        for index in range(files):
            shard = shard_of(f"https://example.com/data/{index}", count)
            number[shard] += 1
            size[shard] += sizes[index]
        expected = 1 + math.sqrt(2 * math.log(count) * count / files)
        print(f"  {count:6} shards: files {spread(number)} (theory: largest {expected:.3f}); bytes {spread(size)}")
    return sizes


def stragglers(files, machines, sizes, chance):
    print(f"\nHow long does the last part take? {machines} machines, one in twenty works at a quarter of the speed.")
    speeds = [0.25 if chance.random() < 0.05 else 1.0 for _ in range(machines)]
    ideal = sum(sizes) / sum(speeds)
    for factor in (1, 2, 4, 8, 16, 32):
        count = machines * factor
        parts = [0.0] * count
        for index in range(files):
            parts[shard_of(f"https://example.com/data/{index}", count)] += sizes[index]
        # The scheduler gives the next shard to the machine that is free first.
        ready = [(0.0, machine) for machine in range(machines)]
        heapq.heapify(ready)
        end = 0.0
        for part in parts:
            time, machine = heapq.heappop(ready)
            time += part / speeds[machine]
            end = max(end, time)
            heapq.heappush(ready, (time, machine))
        print(f"  {factor:3} shards for each machine: {end / ideal:.2f} times the time of an even division by speed")


def failures(machines, chance):
    print("\nWhat do failures cost? 1 % of the files fail for a while; each run tries a file three times.")
    shards, each = machines * 8, 1_000
    for rate in (0.01, 0.1, 0.5):
        rest = [each] * shards
        runs, tries = 0, 0
        while any(rest) and runs < 50:
            runs += 1
            following = []
            for count in rest:
                failed = 0
                for _ in range(count):
                    # 1 % of the files are troubled at first, all of those that are left in later runs.
                    if runs > 1 or chance.random() < 0.01:
                        attempts = next((n for n in (1, 2, 3) if chance.random() > rate), 4)
                        tries += min(attempts, 3)
                        failed += attempts == 4
                    else:
                        tries += 1
                following.append(failed)
            again = sum(1 for count in following if count)
            if runs == 1:
                first = again
            rest = following
        print(f"  an attempt at a troubled file fails in {rate:4.0%}: {first} of {shards} shards are queued again (status 75), "
              f"{runs} rounds, {tries / shards / each - 1:.2%} more requests")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--machines", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    sizes = balance(options.files, (options.machines, options.machines * 8, options.machines * 100), chance)
    stragglers(options.files, options.machines, sizes, chance)
    failures(options.machines, chance)


main()
