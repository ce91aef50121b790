#include "every_header.hpp"

int version_of_one();

int main() { return version_of_one() == RONDO_VERSION ? 0 : 1; }
