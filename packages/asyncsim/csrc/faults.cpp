#include "faults.h"

#include <array>
#include <atomic>
#include <stdexcept>

namespace asyncsim {
namespace {

constexpr size_t kFaults = size_t(Fault::kCount);

// In the order of the enumeration.
constexpr std::array<const char*, kFaults> kNames = {
    "sync-returns-early", "events-zero", "events-in-microseconds", "events-in-seconds", "events-negative",
    "events-too-long", "events-stamped-on-host", "clocks-lie-together", "query-always-true",
    "record-event-ignored", "wait-event-ignored", "stream-order-violated", "record-stream-ignored",
    "copy-returns-early", "copy-drops-tail", "copy-drops-large-tail", "index-ignored", "oom-is-plain",
    "fork-unnoticed", "host-copies", "input-mutated", "noncontiguous-wrong", "expanded-wrong",
    "zero-size-raises", "large-wrong", "wrong-promotion", "nan-dropped", "peak-never-reset", "memory-zero",
    "seed-ignored", "rng-state-ignored", "memory-info-hangs", "device-count-changes", "collective-wrong-sum",
    "collective-hangs", "new-parameters"};

std::array<std::atomic<bool>, kFaults> switches{};
std::atomic<int64_t> lost_after{-1};
std::atomic<int64_t> kernels{0};

}  // namespace

std::vector<std::string> fault_names() { return {kNames.begin(), kNames.end()}; }

void set_fault(const std::string& name, bool on) {
  for (size_t each = 0; each < kFaults; ++each) {
    if (name == kNames[each]) {
      switches[each] = on;
      return;
    }
  }
  throw std::invalid_argument("'" + name + "' is not a fault");
}

bool active(Fault fault) { return switches[size_t(fault)].load(std::memory_order_relaxed); }

void set_lost_after(int64_t number) {
  lost_after = number;
  kernels = 0;
}

bool device_answers() {
  const int64_t limit = lost_after.load(std::memory_order_relaxed);
  return limit < 0 || kernels.load(std::memory_order_relaxed) <= limit;
}

void count_kernel() {
  if (lost_after.load(std::memory_order_relaxed) >= 0) ++kernels;
}

}  // namespace asyncsim
