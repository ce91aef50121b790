#!/usr/bin/env python3
"""The reference is complete: what users can name is named there. One case a kind of name."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import checks

root = checks.root
folders = ("include/rondo", "include/rondo/adapters", "include/rondo/async", "include/rondo/diagnostics",
           "include/rondo/fused", "include/rondo/gradient", "include/rondo/gradient/compression",
           "include/rondo/pipeline", "include/rondo/schedule", "transports/rondo/transports", "cuda/rondo/cuda",
           "cuda/rondo/cuda/fused")
public_headers = [path for folder in folders for path in sorted((root / folder).iterdir())
                  if path.suffix in (".hpp", ".h", ".cuh")]
pages = {path.name: path.read_text() for path in (root / "docs" / "reference").glob("*.md")}


def missing(names, page):
    """Complains about every name that the page, or any page if none is given, does not have as a whole word."""
    text = pages[page] if page else "\n".join(pages.values())
    return "".join(f"docs/reference/{page or ''}: does not name {name}\n" for name in sorted(set(names))
                   if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text))


def public(file):
    """The text of a header without what lies in the namespaces detail and run, and behind private."""
    text = (root / file).read_text()
    if re.search(r"^namespace rondo::inline v0::detail \{", text, re.M):
        return ""
    text = re.sub(r"^namespace (detail|run) \{.*?^\}  // namespace \1$", "", text, flags=re.M | re.S)
    return re.sub(r"^ private:.*?^\};", "};", text, flags=re.M | re.S)


def found(pattern, *files):
    return [name for file in files for name in re.findall(pattern, public(file), re.M)]


def headers():
    return missing([path.relative_to(base).as_posix() for base in checks.include_roots for path in public_headers
                    if path.is_relative_to(base) and base.name != "cuda"], "headers.md") + missing(
                        [path.relative_to(root / "cuda").as_posix() for path in public_headers
                         if path.is_relative_to(root / "cuda")], "cuda.md")


def stale():
    """Headers that the reference names and that are gone."""
    named = re.findall(r"`(rondo/[\w/]+\.(?:hpp|cuh))`", "\n".join(pages.values()))
    return "".join(f"docs/reference: {name} does not exist\n" for name in sorted(set(named))
                   if not any((base / name).exists() for base in checks.include_roots))


checks.report([
    ("every public header is in the reference", headers),
    ("every header in the reference exists", stale),
    ("every public name is in the reference", lambda: missing(
        found(r"^(?:class|struct|enum class|concept|using|inline constexpr \w+(?:<\w+>)?) (?:alignas\(.*\) )?"
              r"(?!namespace|alignas)(\w+)",
              *public_headers), None)),
    ("every call of communicator is in the reference", lambda: missing(
        found(r"^  (?:\w+|std::optional<communicator>) (\w+)\(.*\{$", "include/rondo/communicator.hpp"),
        "communicator.md")),
    ("every field of the options is in the reference", lambda: missing(
        found(r"^  [\w:]+(?:<[\w:]+>)? (\w+)(?: = [^;]+|\{[^;]*\});", "include/rondo/options.hpp",
              "transports/rondo/transports/environment.hpp", "transports/rondo/transports/tcp/options.hpp",
              "transports/rondo/transports/multi/options.hpp"), None)),
    ("every environment variable is in the reference", lambda: missing(
        found(r'"(RONDO_[A-Z_]+)"', "transports/rondo/transports/environment.hpp",
              "transports/rondo/transports/interfaces.hpp", "transports/rondo/transports/multi.hpp"), "joining.md")),
    ("every option of the rondo command is in the reference", lambda: missing(
        re.findall(r"(?<=[\",!])(--?[a-zA-Z][\w-]*)(?=[\",])", "".join(
            (root / "bench" / name).read_text() for name in ("command_line.cpp", "launch.cpp"))), "command.md")),
])
