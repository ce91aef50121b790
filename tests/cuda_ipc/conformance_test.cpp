#include "../conformance/transport_suite.hpp"
#include "backends.hpp"

namespace rondo::testing {
namespace {

using backends = ::testing::Types<over_devices<place::own_process, device_sharing::handles, buffers::of_either>>;
INSTANTIATE_TYPED_TEST_SUITE_P(cuda_ipc, transport_suite, backends);

}  // namespace
}  // namespace rondo::testing
