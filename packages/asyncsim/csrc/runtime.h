// The driver's part: devices with their streams, which of them are current, and what a fork breaks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "queue.h"

namespace asyncsim {

constexpr int kDevices = 2;
constexpr int64_t kStreams = 32;  // of each device, the default stream 0 among them

int device_count();
int current_device();
void set_current_device(int device);  // raises std::runtime_error for an index that is not there

int64_t current_stream(int device);
int64_t exchange_stream(int device, int64_t stream);
int64_t next_stream(int device);
Queue& queue(int device, int64_t stream);
Queue& current_queue(int device);

// Whether any stream was ever used in this process, which forking then breaks.
bool initialized();
bool in_bad_fork();
void refuse_bad_fork();

// Puts a kernel on the current stream of a device; counts it, and raises where the device is lost.
void launch(const std::string& name, int device, Time margin, std::function<void()> work);

// These wait without Python's lock. What the device itself needs to have ended it finishes; what it is asked to
// wait for it synchronizes, unless a fault has it return early.
void finish_stream(int device, int64_t stream);
void finish_device(int device);
void synchronize_stream(int device, int64_t stream);
void synchronize_device(int device);
void synchronize_event(Event& event);
void shut_down();

}  // namespace asyncsim
