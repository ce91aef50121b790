// The binary part of the Python package rondo_torch: makes "rondo" a backend of torch.distributed.
#include <rondo/adapters/torch.hpp>
#include <rondo/adapters/torch_hook.hpp>

#include <chrono>
#include <optional>
#include <pybind11/chrono.h>
#include <string>
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

std::unique_ptr<rondo::torch_hook> hook(c10::intrusive_ptr<rondo::torch_interface> const& group,
                                        std::string const& compression, double max_norm) {
  auto* const backend = dynamic_cast<rondo::torch_backend*>(group.get());
  if (!backend)
    throw rondo::invalid_argument("this hook needs a group of the backend rondo: give it one that was made with it");
  return std::make_unique<rondo::torch_hook>(*backend, rondo::torch_hook_options{compression, max_norm});
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("create", &create, py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("timeout"));
  py::class_<rondo::torch_hook>(m, "Hook")
      .def(py::init(&hook))
      .def("reduce", &rondo::torch_hook::reduce, py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("norm", &rondo::torch_hook::norm)
      .def_property_readonly("ratio", [](rondo::torch_hook const& h) { return h.statistics().ratio(); });
  auto const register_backend = py::module::import("torch.distributed").attr("Backend").attr("register_backend");
#if TORCH_VERSION_MAJOR >= 2
  register_backend("rondo", m.attr("create"), py::arg("devices") = "cpu");
#else
  register_backend("rondo", m.attr("create"));
#endif
}
