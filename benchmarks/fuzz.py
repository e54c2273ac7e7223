"""Read damaged files of every kind: no traceback, no hang, no crash, and no other content if there is a checksum.

    python benchmarks/fuzz.py --inputs 10000 --kinds all

Mutates a good file of each kind (bits, bytes, blocks, lines, headers, records of archives) and reads it as the package
does, in a separate process with limits of time and memory. Prints the outcomes for each kind, and every input that was
neither refused with one line nor read correctly; exits with 1 if there was one. Requests to the server are kinds as
well: damaged ones, and attacks that repeat a piece up to 900 KB; the server must answer another request afterwards.
An input is a function of its kind, the seed and its number, so that ``--kinds KIND --first NUMBER --inputs 1`` repeats
it. The tests run a small version (tests/fuzz).
"""

import argparse
import math
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))


def main() -> int:
    from tests.fuzz.kinds import KINDS
    from tests.fuzz.runner import GOOD, counts, run_inputs

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=10_000, help="total, divided among the kinds")
    parser.add_argument("--kinds", nargs="+", default=["all"], help=f"of: {', '.join(KINDS)}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first input of each kind")
    parser.add_argument("--seconds", type=float, default=20.0, help="time limit of an input")
    parser.add_argument("--memory", type=float, default=4.0, help="memory limit of an input, in GB")
    options = parser.parse_args()
    kinds = list(KINDS) if options.kinds == ["all"] else options.kinds
    each, begin, outcomes = math.ceil(options.inputs / len(kinds)), time.monotonic(), []
    for outcome in run_inputs(
        kinds, seed=options.seed, inputs=each, first=options.first, seconds=options.seconds, memory_gb=options.memory
    ):
        outcomes.append(outcome)
        if not outcome.good:
            print(f"{outcome.kind} {outcome.index}: {outcome.verdict}: {outcome.detail}", flush=True)
    bad = sorted({outcome.verdict for outcome in outcomes if not outcome.good})
    columns = [*GOOD, *bad]
    print("\t".join(["kind", "inputs", *columns]))
    for kind, found in counts(outcomes).items():
        print("\t".join([kind, str(found.total()), *(str(found[column]) for column in columns)]))
    failed = sum(not outcome.good for outcome in outcomes)
    print(f"{len(outcomes)} inputs, {failed} with a wrong outcome, {time.monotonic() - begin:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
