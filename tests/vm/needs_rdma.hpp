#pragma once

#include <rondo/transports/verbs/ports.hpp>

#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <string>

/// What a test of RDMA needs of the machine that it runs on.
namespace vm_test {

/// Why this machine cannot do RDMA; empty if it can.
inline std::string const& why_no_rdma() {
  static std::string const why = [] {
    try {
      rondo::detail::verbs_ports const found(rondo::verbs_options{});
      return std::string();
    } catch (rondo::error const& e) { return std::string(e.what()); }
  }();
  return why;
}

/// True where a test that finds no RDMA is wrong rather than idle: tests/vm/run.sh says so.
inline bool rdma_is_promised() {
  char const* const value = std::getenv("RONDO_TEST_NEEDS_RDMA");
  return value != nullptr && std::strcmp(value, "1") == 0;
}

}  // namespace vm_test

/// Leaves a test, as skipped or, where RONDO_TEST_NEEDS_RDMA=1 promises a device, as failed, if there is no RDMA.
#define NEEDS_RDMA()                                                                                                   \
  if (vm_test::why_no_rdma().empty()) {                                                                                \
  } else if (vm_test::rdma_is_promised()) {                                                                            \
    FAIL() << vm_test::why_no_rdma();                                                                                  \
  } else                                                                                                               \
    GTEST_SKIP() << vm_test::why_no_rdma()
