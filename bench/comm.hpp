#pragma once

#include <rondo/communicator.hpp>
#include <rondo/transports/any_transport.hpp>

namespace rondo::bench {

/// The one instantiation of the library that the command measures: the transport is chosen at run time.
class comm : public communicator<any_transport> {
 public:
  using communicator<any_transport>::communicator;
};

}  // namespace rondo::bench
