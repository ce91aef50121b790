#pragma once

namespace rondo::bench {

/// `rondo launch -n 4 -- command …`: starts local ranks that find each other, and ends with them.
///
/// argv[0] is "launch". Every rank is the leader of a process group. When one fails, the others get a grace period to
/// find out by themselves, then SIGTERM, then SIGKILL; when the launcher itself is killed, the ranks are killed with
/// it. Returns the exit code of the first rank that failed, 128 + the signal that killed it, or 0.
int launch(int argc, char** argv);

}  // namespace rondo::bench
