// A stream: work in order, done later by a thread of its own, on a timeline that plans decide.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "clock.h"

namespace asyncsim {

struct Event;

// Something on a stream. A kernel has `work`; a mark (of an event) and a wait (for one) have `event`.
struct Task {
  enum class Kind : uint8_t { Kernel, Mark, Wait };
  Kind kind = Kind::Kernel;
  std::function<void()> work;
  std::shared_ptr<Event> event;
  uint64_t version = 0;   // of the event
  Time submitted = 0;
  Time duration = -1;     // planned; negative: as long as the work takes
  Time margin = 0;        // how long before its end the work must begin
};

// What a stream had reached when it was recorded. Recording again makes a new version.
struct Event {
  std::mutex lock;
  std::condition_variable changed;
  uint64_t recorded = 0;   // versions that were asked for
  uint64_t reached = 0;    // the last version that its stream came to
  Time stamp = 0;          // of that version, on the timeline
  int device = 0;

  bool done();             // also on the clock
  void wait(uint64_t version);
  Time stamp_of(uint64_t version);  // waits for it
};

class Queue {
 public:
  Queue();

  void submit(Task task);
  void record(const std::shared_ptr<Event>& event);
  void wait_for(const std::shared_ptr<Event>& event);

  // Waits until all that was submitted has ended, on the clock too; rethrows what a kernel raised.
  void synchronize();
  bool idle();
  void stop();

 private:
  static constexpr uint64_t kNobody = ~uint64_t(0);

  void run();
  void execute(Task& task);
  void perform(Task& task);

  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  uint64_t submitted_ = 0;
  uint64_t ended_ = 0;
  uint64_t awaited_ = kNobody;  // the first end that somebody waits for
  std::atomic<Time> end_{0};   // of the last task that ended, on the timeline
  std::exception_ptr failure_;
  bool sleeping_ = false;
  bool stopped_ = false;
};

}  // namespace asyncsim
