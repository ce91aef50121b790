#include <rondo/version.hpp>

#include <cstdio>

// Prints the version, for the script that compares it with what the package says.
int main() { std::printf("%d.%d.%d\n", RONDO_VERSION_MAJOR, RONDO_VERSION_MINOR, RONDO_VERSION_PATCH); }
