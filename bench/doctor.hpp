#pragma once

namespace rondo::bench {

/// `rondo doctor`: what this machine offers, what rondo would choose on it and why, and how to mend what is wrong.
/// Returns 1 if there is a problem.
int doctor();

}  // namespace rondo::bench
