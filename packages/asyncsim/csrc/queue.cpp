#include "queue.h"

#include <sys/prctl.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "faults.h"

namespace asyncsim {
namespace {

// Like the launch queues of real devices: a host that is further ahead than this waits.
constexpr size_t kDepth = 1024;

}  // namespace

bool Event::done() {
  std::lock_guard<std::mutex> held(lock);
  return reached >= recorded && now() >= stamp;
}

void Event::wait(uint64_t version) { wait_until(stamp_of(version)); }

Time Event::stamp_of(uint64_t version) {
  std::unique_lock<std::mutex> held(lock);
  changed.wait(held, [&] { return reached >= version; });
  return stamp;
}

Queue::Queue() { std::thread([this] { run(); }).detach(); }

void Queue::submit(Task task) {
  task.submitted = now();
  std::unique_lock<std::mutex> held(lock_);
  changed_.wait(held, [&] { return tasks_.size() < kDepth || stopped_; });
  tasks_.push_back(std::move(task));
  ++submitted_;
  if (sleeping_) changed_.notify_all();
}

void Queue::record(const std::shared_ptr<Event>& event) {
  Task task;
  task.kind = Task::Kind::Mark;
  task.event = event;
  {
    std::lock_guard<std::mutex> held(event->lock);
    task.version = ++event->recorded;
    if (active(Fault::RecordEventIgnored) || active(Fault::EventsStampedOnHost) ||
        active(Fault::ClocksLieTogether)) {
      event->reached = task.version;
      event->stamp = now();
      return;
    }
  }
  submit(std::move(task));
}

void Queue::wait_for(const std::shared_ptr<Event>& event) {
  if (active(Fault::WaitEventIgnored)) return;
  Task task;
  task.kind = Task::Kind::Wait;
  task.event = event;
  {
    std::lock_guard<std::mutex> held(event->lock);
    task.version = event->recorded;
  }
  if (task.version > 0) submit(std::move(task));
}

void Queue::synchronize() {
  std::exception_ptr failure;
  {
    std::unique_lock<std::mutex> held(lock_);
    const uint64_t last = submitted_;
    while (ended_ < last && !stopped_) {
      awaited_ = std::min(awaited_, last);
      changed_.wait(held);
    }
    failure = std::exchange(failure_, nullptr);
  }
  wait_until(end_.load());
  if (failure) std::rethrow_exception(failure);
}

bool Queue::idle() {
  std::lock_guard<std::mutex> held(lock_);
  return ended_ == submitted_ && now() >= end_.load();
}

void Queue::stop() {
  std::lock_guard<std::mutex> held(lock_);
  stopped_ = true;
  changed_.notify_all();
}

void Queue::run() {
  prctl(PR_SET_TIMERSLACK, 1000UL);
  prctl(PR_SET_NAME, "asyncsim stream");
  while (true) {
    Task task;
    {
      std::unique_lock<std::mutex> held(lock_);
      sleeping_ = true;
      changed_.wait(held, [&] { return !tasks_.empty() || stopped_; });
      sleeping_ = false;
      if (stopped_) return;
      const bool swap = active(Fault::StreamOrderViolated) && tasks_.size() > 1 &&
                        tasks_[0].kind == Task::Kind::Kernel && tasks_[1].kind == Task::Kind::Kernel;
      if (swap) std::swap(tasks_[0], tasks_[1]);
      task = std::move(tasks_.front());
      tasks_.pop_front();
      if (tasks_.size() == kDepth - 1) changed_.notify_all();
    }
    execute(task);
    task = Task();  // what it held is given back before anybody hears that it ended
    {
      std::lock_guard<std::mutex> held(lock_);
      ++ended_;
      if (ended_ >= awaited_) {
        awaited_ = kNobody;
        changed_.notify_all();
      }
    }
  }
}

void Queue::execute(Task& task) {
  const Time begin = std::max(end_.load(), task.submitted);
  if (task.kind == Task::Kind::Mark) {
    std::lock_guard<std::mutex> held(task.event->lock);
    if (task.version > task.event->reached) {
      task.event->reached = task.version;
      task.event->stamp = begin;
    }
    task.event->changed.notify_all();
    end_ = begin;
    return;
  }
  if (task.kind == Task::Kind::Wait) {
    end_ = std::max(begin, task.event->stamp_of(task.version));
    return;
  }
  // A short kernel is done a little before its time, so that a thread that wakes late ends none late.
  const Time latest = task.duration < 0 ? begin : begin + task.duration - task.margin;
  if (latest > now()) sleep_until(latest);
  const Time began = now();
  perform(task);
  end_ = task.duration < 0 ? std::max(begin, began) + (now() - began) : begin + task.duration;
}

void Queue::perform(Task& task) {
  try {
    task.work();
  } catch (...) {
    std::lock_guard<std::mutex> held(lock_);
    if (!failure_) failure_ = std::current_exception();
  }
}

}  // namespace asyncsim
