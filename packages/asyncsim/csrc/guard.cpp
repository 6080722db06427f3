// What PyTorch asks of devices, streams and events.
#include <c10/core/DeviceCapability.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "allocator.h"
#include "faults.h"
#include "runtime.h"

namespace asyncsim {
namespace {

constexpr auto kType = c10::DeviceType::PrivateUse1;
using Held = std::shared_ptr<Event>;

int index_of(c10::Device device) { return device.has_index() ? device.index() : current_device(); }

c10::Stream stream_of(int device, int64_t id) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kType, c10::DeviceIndex(device)), id);
}

double milliseconds(Time elapsed) {
  const double exact = double(elapsed) * 1e-6;
  if (active(Fault::EventsZero)) return 0.0;
  if (active(Fault::EventsInMicroseconds)) return exact * 1e3;
  if (active(Fault::EventsInSeconds)) return exact * 1e-3;
  if (active(Fault::EventsNegative)) return -exact;
  if (active(Fault::EventsTooLong)) return exact * 1.5;
  return exact;
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kType; }

  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  c10::Device getDevice() const override { return {kType, c10::DeviceIndex(current_device())}; }
  void setDevice(c10::Device device) const override {
    if (device.has_index()) set_current_device(device.index());
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.has_index() && device.index() < kDevices) set_current_device(device.index());
  }
  c10::DeviceIndex deviceCount() const noexcept override { return c10::DeviceIndex(device_count()); }
  c10::DeviceCapability getDeviceCapability(c10::Device) const override { return {}; }

  c10::Stream getStream(c10::Device device) const override {
    return stream_of(index_of(device), current_stream(index_of(device)));
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return stream_of(index_of(device), 0); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return stream_of(index_of(device), next_stream(index_of(device)));
  }
  c10::Stream getNewStream(c10::Device device, int) const override {
    return stream_of(index_of(device), next_stream(index_of(device)));
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const int device = stream.device_index();
    return stream_of(device, exchange_stream(device, stream.id()));
  }
  bool queryStream(const c10::Stream& stream) const override {
    return active(Fault::QueryAlwaysTrue) || queue(stream.device_index(), stream.id()).idle();
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    synchronize_stream(stream.device_index(), stream.id());
  }
  void synchronizeDevice(const c10::DeviceIndex device) const override {
    synchronize_device(device < 0 ? current_device() : device);
  }
  void recordDataPtrOnStream(const c10::DataPtr& pointer, const c10::Stream& stream) const override {
    record_stream(pointer, stream.id());
  }

  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<Held*>(event);
  }
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex,
              const c10::EventFlag) const override {
    if (*event == nullptr) *event = new Held(std::make_shared<Event>());
    queue(stream.device_index(), stream.id()).record(*static_cast<Held*>(*event));
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event != nullptr) queue(stream.device_index(), stream.id()).wait_for(*static_cast<Held*>(event));
  }
  bool queryEvent(void* event) const override {
    return event == nullptr || active(Fault::QueryAlwaysTrue) || (*static_cast<Held*>(event))->done();
  }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) synchronize_event(**static_cast<Held*>(event));
  }
  double elapsedTime(void* first, void* second, const c10::DeviceIndex) const override {
    TORCH_CHECK(first != nullptr && second != nullptr, "Both events must be recorded before calculating elapsed time.");
    auto& begin = *static_cast<Held*>(first);
    auto& end = *static_cast<Held*>(second);
    const bool careless = active(Fault::SyncReturnsEarly) || active(Fault::ClocksLieTogether);
    TORCH_CHECK(careless || (begin->done() && end->done()),
                "Both events must be completed before calculating elapsed time.");
    return milliseconds(end->stamp_of(end->recorded) - begin->stamp_of(begin->recorded));
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

}  // namespace
}  // namespace asyncsim
