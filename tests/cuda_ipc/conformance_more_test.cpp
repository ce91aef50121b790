#include "../conformance/transport_suite.hpp"
#include "backends.hpp"

namespace rondo::testing {
namespace {

using more_backends =
    ::testing::Types<over_devices<place::one_process, device_sharing::automatic, buffers::of_the_device>,
                     over_devices<place::one_process, device_sharing::automatic, buffers::of_either>,
                     over_devices<place::own_process, device_sharing::files, buffers::of_the_device>,
                     over_devices<place::own_process, device_sharing::files, buffers::of_either>,
                     over_devices<place::own_process, device_sharing::automatic, buffers::of_the_host>>;
INSTANTIATE_TYPED_TEST_SUITE_P(cuda_ipc, transport_suite, more_backends);

}  // namespace
}  // namespace rondo::testing
