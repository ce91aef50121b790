#include "every_header.hpp"

int version_of_one() { return RONDO_VERSION; }
