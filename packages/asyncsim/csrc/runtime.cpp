#include <Python.h>

#include "runtime.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <mutex>
#include <stdexcept>

#include "faults.h"
#include "plan.h"

namespace asyncsim {
namespace {

struct Device {
  std::mutex lock;
  std::array<std::unique_ptr<Queue>, kStreams> streams;
  int64_t next = 1;
};

// Never destroyed: threads may still look at it when the process ends.
std::array<Device, kDevices>& devices() {
  static auto* all = new std::array<Device, kDevices>();
  return *all;
}

std::atomic<bool> touched{false};
std::atomic<bool> broken_by_fork{false};
std::atomic<int> counted{0};
thread_local int chosen_device = 0;
thread_local std::array<int64_t, kDevices> chosen_stream{};

void after_fork_in_child() {
  if (!touched) return;
  broken_by_fork = true;
  if (!active(Fault::ForkUnnoticed)) return;
  // The threads are the parent's. New ones, and what they write the parent never sees.
  for (auto& device : devices()) {
    new (&device.lock) std::mutex();
    for (auto& stream : device.streams) stream.release();
  }
}

// A stream's thread may need Python's lock to give back what a task held.
class WithoutPython {
 public:
  WithoutPython() : state_(Py_IsInitialized() && PyGILState_Check() ? PyEval_SaveThread() : nullptr) {}
  ~WithoutPython() {
    if (state_ != nullptr) PyEval_RestoreThread(state_);
  }
  WithoutPython(const WithoutPython&) = delete;
  WithoutPython& operator=(const WithoutPython&) = delete;

 private:
  PyThreadState* state_;
};

void refuse_lost() {
  if (!device_answers()) throw std::runtime_error("asyncsim runtime error: device lost, it no longer answers");
}

bool waits() { return !active(Fault::SyncReturnsEarly) && !active(Fault::ClocksLieTogether); }

}  // namespace

int device_count() {
  if (active(Fault::DeviceCountChanges)) return ++counted > 8 ? 1 : kDevices;
  return kDevices;
}

int current_device() { return chosen_device; }

void set_current_device(int device) {
  if (device < 0 || device >= kDevices) {
    throw std::runtime_error("invalid device ordinal: " + std::to_string(device) + "; this host has " +
                             std::to_string(kDevices) + " devices");
  }
  chosen_device = device;
}

int64_t current_stream(int device) { return chosen_stream.at(device); }

int64_t exchange_stream(int device, int64_t stream) {
  const int64_t before = chosen_stream.at(device);
  chosen_stream.at(device) = stream;
  return before;
}

int64_t next_stream(int device) {
  Device& found = devices().at(device);
  std::lock_guard<std::mutex> held(found.lock);
  const int64_t stream = found.next;
  found.next = stream + 1 < kStreams ? stream + 1 : 1;
  return stream;
}

Queue& queue(int device, int64_t stream) {
  refuse_bad_fork();
  static const int registered = pthread_atfork(nullptr, nullptr, after_fork_in_child);
  (void)registered;
  Device& found = devices().at(device);
  std::lock_guard<std::mutex> held(found.lock);
  auto& place = found.streams.at(stream);
  if (!place) {
    touched = true;
    place = std::make_unique<Queue>();
  }
  return *place;
}

Queue& current_queue(int device) { return queue(device, current_stream(device)); }

bool initialized() { return touched; }
bool in_bad_fork() { return broken_by_fork && !active(Fault::ForkUnnoticed); }

void refuse_bad_fork() {
  if (in_bad_fork()) {
    throw std::runtime_error(
        "Cannot re-initialize asyncsim in forked subprocess. To use asyncsim with multiprocessing, you must use "
        "the 'spawn' start method");
  }
}

void launch(const std::string& name, int device, Time margin, std::function<void()> work) {
  count_kernel();
  refuse_lost();
  Queue& stream = current_queue(device);
  const Time busy = planned_launch();
  if (busy > 0) wait_until(now() + busy);
  Task task;
  task.work = std::move(work);
  task.duration = planned(name);
  task.margin = margin;
  WithoutPython released;
  stream.submit(std::move(task));
}

void finish_stream(int device, int64_t stream) {
  Queue& found = queue(device, stream);
  refuse_lost();
  WithoutPython released;
  found.synchronize();
}

void finish_device(int device) {
  refuse_bad_fork();
  refuse_lost();
  for (int64_t stream = 0; stream < kStreams; ++stream) {
    Queue* found = nullptr;
    {
      std::lock_guard<std::mutex> held(devices().at(device).lock);
      found = devices().at(device).streams[stream].get();
    }
    if (found == nullptr) continue;
    WithoutPython released;
    found->synchronize();
  }
}

void synchronize_stream(int device, int64_t stream) {
  if (waits()) return finish_stream(device, stream);
  refuse_lost();
}

void synchronize_device(int device) {
  if (waits()) return finish_device(device);
  refuse_bad_fork();
  refuse_lost();
}

void synchronize_event(Event& event) {
  if (!waits()) return;
  uint64_t version = 0;
  {
    std::lock_guard<std::mutex> held(event.lock);
    version = event.recorded;
  }
  WithoutPython released;
  event.wait(version);
}

void shut_down() {
  if (broken_by_fork) return;
  for (auto& device : devices()) {
    for (auto& stream : device.streams) {
      if (stream) {
        WithoutPython released;
        stream->stop();
      }
    }
  }
}

}  // namespace asyncsim
