#!/usr/bin/env python3
"""Counts the cases of `meson test` runs: count.py BUILD_FOLDER…

Prints what failed and, as the last line, "N passed, N failed". A GoogleTest case is a case, and so is a line of TAP;
any other test is one case. A program that crashes, times out or does not start is a failure on top of what it had
finished.
"""

import json
import pathlib
import re
import sys
import xml.etree.ElementTree

started = re.compile(r"^\[ RUN      \] (\S+)", re.M)
passed = re.compile(r"^\[       OK \] (\S+)", re.M)
failed = re.compile(r"^\[  FAILED  \] (\S+?),? .*\(\d+ ms\)", re.M)
skipped = re.compile(r"^\[  SKIPPED \] (\S+)", re.M)
tap = re.compile(r"^(not )?ok \d+(?: - )?(.*)", re.M)


def gtest_cases(report):
    """From the report that GoogleTest writes when it comes to its end."""
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        if case.get("status") == "run" and case.get("result") == "completed":
            yield f"{case.get('classname')}.{case.get('name')}", case.find("failure") is None


def cases(test, folder):
    """(name, passed) of each case of one test."""
    said = test.get("stdout", "")
    report = folder / f"{test['name'].split(' / ')[-1]}.xml"  # Meson puts "suite / " before some names
    if report.exists():
        found = list(gtest_cases(report))
    elif started.search(said):  # it never came to its end: what it printed tells how far
        good, bad = set(passed.findall(said)), set(failed.findall(said))
        open_ = set(started.findall(said)) - good - bad - set(skipped.findall(said))
        found = [(name, True) for name in good] + [(name, False) for name in bad]
        found += [(f"{name} (did not end)", False) for name in open_]
    else:
        found = [(name, not wrong) for wrong, name in tap.findall(said) if "# SKIP" not in name]
    if test["result"] == "OK":
        return found if found or tap.search(said) else [("ran to its end", True)]
    if test["result"] != "SKIP" and all(success for _, success in found):
        found.append((f"the program itself ({test['result'].lower()}, exit {test['returncode']})", False))
    return found


def main():
    good, bad = 0, []
    for folder in map(pathlib.Path, sys.argv[1:]):
        logs = sorted((folder / "meson-logs").glob("testlog*.json"))  # its name holds that of the test setup
        if not logs:
            bad.append(f"{folder.name}: did not build, or ran no test")
        for test in (json.loads(line) for log in logs for line in log.read_text().splitlines()):
            for name, success in cases(test, folder):
                good += success
                if not success:
                    bad.append(f"{folder.name}: {test['name']}: {name}")
    for name in bad:
        print(f"FAILED {name}")
    print(f"{good} passed, {len(bad)} failed")
    sys.exit(bool(bad) or not good)


main()
