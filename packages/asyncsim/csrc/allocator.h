// The caching allocator of the device, whose memory is the host's.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

namespace asyncsim {

class CachingAllocator;
CachingAllocator& allocator();

c10::DeviceAllocator& device_allocator();
// The device whose memory a pointer lies in, -1 where it is none of ours.
int device_of(const void* pointer);
// Bytes of each device.
void set_memory(size_t bytes);
// Lets counters change when the stream gets there, as with allocators that work in stream order.
void set_late_counters(bool late);
// Tells the allocator that a stream uses the memory.
void record_stream(const c10::DataPtr& pointer, int64_t stream);

}  // namespace asyncsim
