#include "allocator.h"

#include <unistd.h>

#include <atomic>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "faults.h"
#include "runtime.h"

namespace asyncsim {
namespace {

constexpr size_t kSmall = 1 << 20;
constexpr size_t kSmallUnit = 512;
constexpr size_t kLargeUnit = 2 << 20;
constexpr auto kAll = size_t(c10::CachingAllocator::StatType::AGGREGATE);

std::atomic<size_t> memory{size_t(4) << 30};
std::atomic<bool> late_counters{false};

struct Block {
  char* data = nullptr;
  size_t size = 0;
  size_t requested = 0;
  int device = 0;
  int64_t stream = 0;
  std::set<int64_t> used_on;                     // other streams
  std::vector<std::shared_ptr<Event>> pending;   // after which it may be used again
};

size_t rounded(size_t bytes) {
  const size_t unit = bytes <= kSmall ? kSmallUnit : kLargeUnit;
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

// A freed block goes back to the pool of its stream at once, as what uses it next comes after in stream order.
class CachingAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const int device = current_device();
    const c10::Device place(c10::DeviceType::PrivateUse1, c10::DeviceIndex(device));
    if (bytes == 0) return {nullptr, nullptr, &give_back, place};
    refuse_bad_fork();
    Block* block = take(bytes, device, current_stream(device));
    return {block->data, block, &give_back, place};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &give_back_data; }
  void copy_data(void* target, const void* source, std::size_t count) const override {
    finish_device(current_device());
    std::memcpy(target, source, count);
  }
  bool initialized() override { return true; }

  void emptyCache(c10::MempoolId_t) override {
    for (int device = 0; device < kDevices; ++device) {
      if (asyncsim::initialized()) finish_device(device);
    }
    std::lock_guard<std::mutex> held(lock_);
    for (int device = 0; device < kDevices; ++device) release(device);
  }

  void recordStream(const c10::DataPtr& pointer, c10::Stream stream) override {
    record_stream(pointer, stream.id());
  }

  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    std::lock_guard<std::mutex> held(lock_);
    if (active(Fault::MemoryZero)) return {};
    return stats_.at(device);
  }

  void resetAccumulatedStats(c10::DeviceIndex device) override {
    std::lock_guard<std::mutex> held(lock_);
    each(stats_.at(device), [](c10::CachingAllocator::Stat& stat) { stat.reset_accumulated(); });
  }

  void resetPeakStats(c10::DeviceIndex device) override {
    if (active(Fault::PeakNeverReset)) return;
    std::lock_guard<std::mutex> held(lock_);
    each(stats_.at(device), [](c10::CachingAllocator::Stat& stat) { stat.reset_peak(); });
  }

  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override {
    while (active(Fault::MemoryInfoHangs)) pause();
    std::lock_guard<std::mutex> held(lock_);
    const auto reserved = size_t(stats_.at(device).reserved_bytes[kAll].current);
    return {memory - std::min<size_t>(memory, reserved), memory};
  }

  int device_of(const void* pointer) {
    std::lock_guard<std::mutex> held(lock_);
    auto after = blocks_.upper_bound(static_cast<const char*>(pointer));
    if (after == blocks_.begin()) return -1;
    const Block* block = std::prev(after)->second;
    return static_cast<const char*>(pointer) < block->data + block->size ? block->device : -1;
  }

  void used_on(void* context, int64_t stream) {
    auto* block = static_cast<Block*>(context);
    std::lock_guard<std::mutex> held(lock_);
    if (stream != block->stream && !active(Fault::RecordStreamIgnored)) block->used_on.insert(stream);
  }

 private:
  using Pool = std::multimap<size_t, Block*>;

  template <typename Action>
  static void each(c10::CachingDeviceAllocator::DeviceStats& stats, Action action) {
    for (auto* array : {&stats.allocation, &stats.segment, &stats.active, &stats.allocated_bytes,
                        &stats.reserved_bytes, &stats.active_bytes, &stats.requested_bytes}) {
      action((*array)[kAll]);
    }
  }

  Block* take(size_t bytes, int device, int64_t stream) {
    const size_t size = rounded(bytes);
    std::unique_lock<std::mutex> held(lock_);
    Block* block = reuse(size, device, stream);
    if (block == nullptr && !fits(size, device)) {
      held.unlock();
      emptyCache({0, 0});
      held.lock();
    }
    if (block == nullptr) block = make(size, device, stream);
    block->requested = bytes;
    held.unlock();
    count(*block, 1);
    return block;
  }

  // One block more or less that tensors have.
  void count(const Block& block, int step) {
    const auto change = [this, device = block.device, size = block.size, bytes = block.requested, step] {
      std::lock_guard<std::mutex> held(lock_);
      auto& stats = stats_.at(device);
      const auto move = [step](c10::CachingAllocator::StatArray& array, size_t amount) {
        step > 0 ? array[kAll].increase(amount) : array[kAll].decrease(amount);
      };
      move(stats.allocation, 1);
      move(stats.active, 1);
      move(stats.allocated_bytes, size);
      move(stats.active_bytes, size);
      move(stats.requested_bytes, bytes);
    };
    if (!late_counters) {
      change();
      return;
    }
    Task task;
    task.work = change;
    task.duration = 0;
    queue(block.device, block.stream).submit(std::move(task));
  }

  Block* reuse(size_t size, int device, int64_t stream) {
    Pool& pool = pools_[{device, stream}];
    for (auto found = pool.lower_bound(size); found != pool.end(); ++found) {
      if (found->first > size + size / 4) break;
      auto& pending = found->second->pending;
      if (!std::all_of(pending.begin(), pending.end(), [](auto& event) { return event->done(); })) continue;
      Block* block = found->second;
      pending.clear();
      pool.erase(found);
      return block;
    }
    return nullptr;
  }

  bool fits(size_t size, int device) const {
    return size_t(stats_.at(device).reserved_bytes[kAll].current) + size <= memory;
  }

  Block* make(size_t size, int device, int64_t stream) {
    auto& stats = stats_.at(device);
    void* data = fits(size, device) ? std::aligned_alloc(kSmallUnit, size) : nullptr;
    if (data == nullptr) {
      stats.num_ooms += 1;
      const auto words = c10::str("asyncsim out of memory. Tried to allocate ", size, " bytes; device ", device,
                                  " has ", size_t(memory), " bytes, of which ",
                                  stats.allocated_bytes[kAll].current, " are allocated.");
      TORCH_CHECK(!active(Fault::OomIsPlain), "asyncsim error 12: no room for ", size, " bytes");
      TORCH_CHECK_WITH(OutOfMemoryError, false, words);
    }
    auto* block = new Block{static_cast<char*>(data), size, 0, device, stream, {}, {}};
    blocks_[block->data] = block;
    stats.segment[kAll].increase(1);
    stats.reserved_bytes[kAll].increase(size);
    stats.num_device_alloc += 1;
    return block;
  }

  void release(int device) {
    for (auto& [key, pool] : pools_) {
      if (key.first != device) continue;
      for (auto& [size, block] : pool) {
        auto& stats = stats_.at(device);
        stats.segment[kAll].decrease(1);
        stats.reserved_bytes[kAll].decrease(size);
        stats.num_device_free += 1;
        blocks_.erase(block->data);
        std::free(block->data);
        delete block;
      }
      pool.clear();
    }
  }

  void put_back(Block* block) {
    std::vector<std::shared_ptr<Event>> pending;
    for (const int64_t stream : block->used_on) {
      auto event = std::make_shared<Event>();
      queue(block->device, stream).record(event);
      pending.push_back(std::move(event));
    }
    count(*block, -1);
    std::lock_guard<std::mutex> held(lock_);
    block->used_on.clear();
    block->pending = std::move(pending);
    pools_[{block->device, block->stream}].emplace(block->size, block);
  }

  static void give_back(void* context) {
    if (context != nullptr && !in_bad_fork()) allocator().put_back(static_cast<Block*>(context));
  }

  static void give_back_data(void* data) {
    Block* block = nullptr;
    {
      std::lock_guard<std::mutex> held(allocator().lock_);
      auto found = allocator().blocks_.find(static_cast<char*>(data));
      if (found != allocator().blocks_.end()) block = found->second;
    }
    give_back(block);
  }

  std::mutex lock_;
  std::map<const char*, Block*> blocks_;
  std::map<std::pair<int, int64_t>, Pool> pools_;
  std::array<c10::CachingDeviceAllocator::DeviceStats, kDevices> stats_;
};

CachingAllocator& allocator() {
  static auto* only = new CachingAllocator();
  return *only;
}

c10::DeviceAllocator& device_allocator() { return allocator(); }
int device_of(const void* pointer) { return allocator().device_of(pointer); }
void set_memory(size_t bytes) { memory = bytes; }
void set_late_counters(bool late) { late_counters = late; }

void record_stream(const c10::DataPtr& pointer, int64_t stream) {
  if (pointer.get_context() != nullptr) allocator().used_on(pointer.get_context(), stream);
}

namespace {
const bool registered = [] {
  c10::SetAllocator(c10::DeviceType::PrivateUse1, &allocator());
  return true;
}();
}  // namespace

}  // namespace asyncsim
