// What PyTorch asks of a backend as a whole, and page-locked memory of the host.
#include <ATen/detail/PrivateUse1HooksInterface.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "allocator.h"
#include "generator.h"
#include "runtime.h"

namespace asyncsim {
namespace {

// Memory that copies may read and write later, as nothing moves it.
class PinnedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const size_t size = (std::max<size_t>(bytes, 1) + 63) / 64 * 64;
    void* data = std::aligned_alloc(64, size);
    TORCH_CHECK(data != nullptr, "asyncsim: no page-locked memory of ", bytes, " bytes");
    std::lock_guard<std::mutex> held(lock_);
    blocks_[data] = size;
    return {data, data, &give_back, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* target, const void* source, std::size_t count) const override {
    default_copy_data(target, source, count);
  }

  bool holds(const void* pointer) {
    std::lock_guard<std::mutex> held(lock_);
    auto after = blocks_.upper_bound(const_cast<void*>(pointer));
    if (after == blocks_.begin()) return false;
    --after;
    return static_cast<const char*>(pointer) < static_cast<char*>(after->first) + after->second;
  }

  static PinnedAllocator& only() {
    static auto* made = new PinnedAllocator();
    return *made;
  }

 private:
  // A copy may still be on its way: the memory stays until every stream is idle.
  static void give_back(void* data) {
    if (initialized() && !in_bad_fork()) {
      for (int device = 0; device < kDevices; ++device) wait_quietly(device);
    }
    std::lock_guard<std::mutex> held(only().lock_);
    only().blocks_.erase(data);
    std::free(data);
  }

  static void wait_quietly(int device) noexcept {
    try {
      finish_device(device);
    } catch (const std::exception&) {  // a lost device writes nothing any more
    }
  }

  std::mutex lock_;
  std::map<void*, size_t> blocks_;
};

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return initialized(); }
  c10::DeviceIndex deviceCount() const override { return c10::DeviceIndex(device_count()); }
  c10::DeviceIndex getCurrentDevice() const override { return c10::DeviceIndex(current_device()); }
  void setCurrentDevice(c10::DeviceIndex device) const override { set_current_device(device); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    const int before = current_device();
    if (device >= 0) set_current_device(device);
    return c10::DeviceIndex(before);
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override { return exchangeDevice(device); }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override {
    return default_generator(device);
  }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override { return make_generator(device); }

  at::Device getDeviceFromPtr(void* data) const override {
    const int device = device_of(data);
    TORCH_CHECK(device >= 0, "the pointer is none of asyncsim's");
    return {c10::DeviceType::PrivateUse1, c10::DeviceIndex(device)};
  }
  bool isPinnedPtr(const void* data) const override { return PinnedAllocator::only().holds(data); }
  at::Allocator* getPinnedMemoryAllocator() const override { return &PinnedAllocator::only(); }

  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    auto* held = storage.unsafeGetStorageImpl();
    const auto before = held->nbytes();
    auto data = device_allocator().allocate(bytes);
    const int device = current_device();
    const void* from = held->data();
    void* to = data.get();
    const size_t kept = std::min<size_t>(before, bytes);
    if (kept > 0) launch("aten::resize_", device, 0, [from, to, kept] { std::memcpy(to, from, kept); });
    held->set_data_ptr_noswap(std::move(data));
    held->set_nbytes(bytes);
  }
};

const bool registered = [] {
  at::RegisterPrivateUse1HooksInterface(new Hooks());
  return true;
}();

}  // namespace
}  // namespace asyncsim
