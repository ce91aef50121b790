// The Python module rondo_torch: importing it makes "rondo" a backend of torch.distributed.
#include <rondo/adapters/torch.hpp>

#include <chrono>
#include <optional>
#include <pybind11/chrono.h>
#include <torch/extension.h>

namespace {

/// The backend as Python owns it: what is still to be done may need the lock that its last owner holds.
class python_backend final : public rondo::torch_backend {
 public:
  using torch_backend::torch_backend;
  ~python_backend() override {
    std::optional<py::gil_scoped_release> unlocked;
    if (PyGILState_Check()) unlocked.emplace();
    close();
  }
};

c10::intrusive_ptr<rondo::torch_interface> create(c10::intrusive_ptr<c10d::Store> const& store, int rank, int size,
                                                  std::chrono::milliseconds timeout) {
  py::gil_scoped_release const unlocked;  // other ranks may be threads of this process
  return c10::make_intrusive<python_backend>(store, rank, size, timeout);
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("create", &create, py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("timeout"));
  auto const register_backend = py::module::import("torch.distributed").attr("Backend").attr("register_backend");
#if TORCH_VERSION_MAJOR >= 2
  register_backend("rondo", m.attr("create"), py::arg("devices") = "cpu");
#else
  register_backend("rondo", m.attr("create"));
#endif
}
