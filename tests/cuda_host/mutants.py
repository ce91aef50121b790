#!/usr/bin/env python3
"""Breaks the kernels, one line at a time, and sees a test fail each time: a test that cannot fail proves nothing.

usage: mutants.py [PART-OF-A-NAME …]    only those whose names have one of these in them

Prints what caught each fault. Everything runs under ThreadSanitizer, which sees what a strong processor hides.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import checks

here = pathlib.Path(__file__).resolve().parent

# (what is wrong, header, text, what stands there instead, test that has to notice)
mutants = [
    ("a barrier that not all threads have come to", "session.hpp",
     "    context_.sync();  // what all threads have done comes before what the flags say\n", "", "protocol"),
    ("a barrier that not all threads wait for", "session.hpp",
     "    return context_.sync_and(all);", "    return all;", "protocol"),
    ("a flag without release", "session.hpp",
     "context_.store_release(ranks_.board(static_cast<rank_t>(q)).arrived[row][ranks_.rank], barriers_)",
     "context_.store_relaxed(ranks_.board(static_cast<rank_t>(q)).arrived[row][ranks_.rank], barriers_)", "protocol"),
    ("a flag without acquire", "session.hpp",
     "return context.load_acquire(f);", "return context.load_relaxed(f);", "protocol"),
    ("barriers that are not counted on", "session.hpp",
     "    own().barriers[context_.block()] = barriers_;\n", "", "protocol"),
    ("windows that are not counted on", "session.hpp",
     "own().windows[b] = window_;", "static_cast<void>(b);", "protocol"),
    ("windows that are not counted on for blocks that a launch lacks", "session.hpp",
     "b < max_blocks; b += context_.blocks()", "b < context_.blocks(); b += context_.blocks()", "protocol"),
    ("one window instead of two", "session.hpp",
     "(window_ & 1) * ranks_.shape.window_bytes", "(window_ & 0) * ranks_.shape.window_bytes", "protocol"),
    ("words of long ago that are left", "session.hpp",
     "    if (window_ >> renewal != opened_ >> renewal) renew_words();\n", "", "protocol"),
    ("words that are renewed though they are new", "session.hpp",
     "if (age > 1 << (renewal - 1)) context_.replace(words[i], word,", "context_.store_relaxed(words[i],", "protocol"),
    ("waits without an end", "session.hpp",
     "if (context.nanoseconds() - start > ranks.patience) {", "if (context.nanoseconds() == start) {", "protocol"),
    ("waits that do not hear that others gave up", "session.hpp",
     "if (context.load_relaxed(ranks.report->raised) != fault::none) return false;", "", "protocol"),
    ("a comparison that does not know that flags wrap", "board.hpp",
     "return static_cast<std::int32_t>(seen - wanted) >= 0;", "return seen >= wanted;", "protocol"),
    ("one generation of words", "low_latency.hpp",
     "((s.number() & 1) * Ranks + from)", "((s.number() & 0) * Ranks + from)", "protocol"),
    ("a two-shot whose results are read before they are there", "two_shot.hpp",
     "if (!s.barrier()) return false;\n      s.each(share, [&](std::size_t i) {\n        for",
     "s.each(share, [&](std::size_t i) {\n        for", "protocol"),
    ("a flag before the data", "tiles.hpp",
     "    context_.sync();  // all of it is stored before the flag says so\n", "", "protocol"),
    ("a slot that is handed back too early", "tiles.hpp",
     "    context_.sync();  // all of it is taken before the slot is handed back\n", "", "protocol"),
    ("slots without credit", "tiles.hpp",
     "number + 1 - ranks_.shape.slots", "number - 1000", "protocol"),
    ("operands in another order", "folding.hpp",
     "static_cast<Accumulator>(x[r][j])", "static_cast<Accumulator>(x[Ranks - 1 - r][j])", "all_reduce"),
    ("stores behind the end of a buffer", "pack.hpp",
     "      if (first + j < count_) data_[first + j] = x.values[j];", "      data_[first + j] = x.values[j];",
     "collectives"),
    ("gradients that are read before all are there", "fused/sync_and_step.hpp",
     "    if (!s.barrier()) return;  // the gradients of all ranks are final\n", "", "step"),
    ("a step that ends before all weights are there", "fused/sync_and_step.hpp",
     "    if (!s.barrier()) return;  // the weights of all ranks are new, and nobody reads gradients any more\n", "",
     "step"),
    ("an owner that keeps what it has not quantised", "fused/quantized.hpp",
     "use(first + at, y);\n        keep_rest", "B z = y;\n        z.scale *= 1.01F;\n        use(first + at, z);\n"
     "        keep_rest", "fused"),
]


def verdict(folder, roots, test, tries):
    """What a build of the test against these headers says: '' if nothing is wrong in so many runs, which differ in how
    their threads meet."""
    program = folder / "test"
    command = ["g++", "-std=c++20", "-O1", "-g1", "-w", "-pthread", "-fsanitize=thread",
               *(f"-I{root}" for root in (*roots, here))]
    said = subprocess.run([*command, here / f"{test}_test.cpp", "-lgtest_main", "-lgtest", "-o", program],
                          capture_output=True, text=True)
    if said.returncode != 0:
        return "the compiler" if "static assertion failed" in said.stderr else "an error: " + said.stderr[-2000:]
    return next(filter(None, (run(program) for _ in range(tries))), "")


def run(program):
    """What one run says: '' if nothing is wrong."""
    environment = dict(os.environ, TSAN_OPTIONS="halt_on_error=1 exitcode=66 report_signal_unsafe=0")
    try:
        ran = subprocess.run([program, "--gtest_brief=1"], capture_output=True, text=True, timeout=120, env=environment)
    except subprocess.TimeoutExpired:
        return "the clock: it hangs"
    if "data race" in ran.stderr:
        return "ThreadSanitizer"
    failed = re.findall(r"^\[  FAILED  \] ([\w/.]+)", ran.stdout, re.M)
    if failed:
        return f"the test {failed[0]}"
    return "" if ran.returncode == 0 else f"its end, {ran.returncode}: {ran.stderr[-500:]}"


def case(name, header, old, new, test):
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        shutil.copytree(checks.root / "cuda", folder / "cuda")
        broken_header = folder / "cuda" / "rondo" / "cuda" / header
        text = broken_header.read_text()
        if text.count(old) != 1:
            return f"{header} has the text that this breaks {text.count(old)} times: bring this script up to date"
        broken_header.write_text(text.replace(old, new))
        caught = verdict(folder, [folder / "cuda", checks.root / "include", checks.root / "transports"], test,
                         tries=20)
        if caught.startswith("an error"):
            return caught
        if not caught:
            return f"no test notices: {name}"
        print(f"# | {name} | {caught} |", flush=True)
        return ""


def sound(test):
    with tempfile.TemporaryDirectory() as place:
        said = verdict(pathlib.Path(place), checks.include_roots, test, tries=1)
        return f"{test}_test.cpp without a fault: {said}" if said else ""


def main():
    tests = sorted({test for *_, test in mutants})
    cases = [(f"{test} is right and without races", lambda test=test: sound(test)) for test in tests]
    cases += [(name, lambda it=(name, *rest): case(*it)) for name, *rest in mutants]
    checks.report((name, check) for name, check in cases
                  if len(sys.argv) == 1 or any(part in name for part in sys.argv[1:]))


main()
