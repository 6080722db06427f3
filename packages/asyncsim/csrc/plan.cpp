#include "plan.h"

#include <atomic>
#include <mutex>
#include <unordered_map>

namespace asyncsim {
namespace {

std::mutex lock;
std::unordered_map<std::string, Time>& plans() {
  static auto* all = new std::unordered_map<std::string, Time>();  // outlives every thread
  return *all;
}
std::atomic<bool> any{false};
std::atomic<Time> launch{0};

}  // namespace

void plan_kernel(const std::string& name, std::optional<Time> duration) {
  std::lock_guard<std::mutex> held(lock);
  if (duration) {
    plans()[name] = *duration;
  } else {
    plans().erase(name);
  }
  any = !plans().empty();
}

void forget_plans() {
  std::lock_guard<std::mutex> held(lock);
  plans().clear();
  any = false;
}

Time planned(const std::string& name) {
  if (!any.load(std::memory_order_relaxed)) return -1;
  std::lock_guard<std::mutex> held(lock);
  auto found = plans().find(name);
  if (found == plans().end()) found = plans().find("*");
  return found == plans().end() ? -1 : found->second;
}

void plan_launch(Time duration) { launch = duration; }
Time planned_launch() { return launch.load(std::memory_order_relaxed); }

}  // namespace asyncsim
