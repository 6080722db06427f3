// What the Python half can ask.
#include <torch/csrc/utils/pybind.h>

#include "allocator.h"
#include "collectives.h"
#include "faults.h"
#include "generator.h"
#include "kernel.h"
#include "plan.h"
#include "runtime.h"

namespace asyncsim {
namespace {

constexpr double kNanoseconds = 1e9;

py::object default_generator_of(int device) {
  return py::cast(default_generator(device));
}

// The counters under the names that PyTorch gives them.
py::dict memory_counters(int device) {
  const auto stats = device_allocator().getDeviceStats(c10::DeviceIndex(device));
  py::dict found;
  const auto put = [&](const char* name, const c10::CachingAllocator::StatArray& array) {
    const auto& stat = array[size_t(c10::CachingAllocator::StatType::AGGREGATE)];
    const std::string prefix = std::string(name) + ".all.";
    found[py::str(prefix + "current")] = stat.current;
    found[py::str(prefix + "peak")] = stat.peak;
    found[py::str(prefix + "allocated")] = stat.allocated;
    found[py::str(prefix + "freed")] = stat.freed;
  };
  put("allocation", stats.allocation);
  put("segment", stats.segment);
  put("allocated_bytes", stats.allocated_bytes);
  put("reserved_bytes", stats.reserved_bytes);
  put("active_bytes", stats.active_bytes);
  put("requested_bytes", stats.requested_bytes);
  found["num_ooms"] = stats.num_ooms;
  return found;
}

void plan(const std::string& name, std::optional<double> seconds) {
  TORCH_CHECK(!seconds || *seconds >= 0, "a kernel cannot take ", seconds.value_or(0), " s");
  std::optional<Time> duration;
  if (seconds) duration = Time(*seconds * kNanoseconds + 0.5);
  plan_kernel(name, duration);
}

}  // namespace

PYBIND11_MODULE(_C, m) {
  m.def("register_kernels", &register_kernels);
  m.def("fault_names", &fault_names);
  m.def("set_fault", &set_fault);
  m.def("set_lost_after", &set_lost_after);
  m.def("set_memory", &set_memory);
  m.def("set_late_counters", &set_late_counters);
  m.def("plan_kernel", &plan, py::arg("name"), py::arg("seconds"));
  m.def("plan_launch", [](double seconds) { plan_launch(Time(seconds * kNanoseconds + 0.5)); });
  m.def("forget_plans", &forget_plans);
  m.def("planned_seconds", [](const std::string& name) -> std::optional<double> {
    const Time found = planned(name);
    if (found < 0) return std::nullopt;
    return double(found) / kNanoseconds;
  });
  m.def("device_count", &device_count);
  m.def("current_device", &current_device);
  m.def("set_current_device", &set_current_device);
  m.def("is_in_bad_fork", &in_bad_fork);
  m.def("is_initialized", &initialized);
  m.def("synchronize", &synchronize_device);
  m.def("shut_down", &shut_down);
  m.def("memory_counters", &memory_counters);
  m.def("reset_peak", [](int device) { device_allocator().resetPeakStats(c10::DeviceIndex(device)); });
  m.def("empty_cache", [] { device_allocator().emptyCache(); });
  m.def("memory_info", [](int device) { return device_allocator().getMemoryInfo(c10::DeviceIndex(device)); });
  m.def("default_generator", &default_generator_of);
  py::module_::import("torch.distributed");
  m.def(
      "collectives",
      [](const c10::intrusive_ptr<c10d::Backend>& host, int rank, int size) -> c10::intrusive_ptr<c10d::Backend> {
        return c10::make_intrusive<Collectives>(host, rank, size);
      },
      py::arg("host"), py::arg("rank"), py::arg("size"));
}

}  // namespace asyncsim
