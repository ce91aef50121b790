#include <rondo/version.hpp>

#include <gtest/gtest.h>

namespace {

TEST(Version, PartsAddUpToTheNumber) {
  EXPECT_EQ(RONDO_VERSION_MAJOR * 10000 + RONDO_VERSION_MINOR * 100 + RONDO_VERSION_PATCH, RONDO_VERSION);
}

}  // namespace
