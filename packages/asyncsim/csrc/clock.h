// The host's steady clock, and a wait on it that ends within a few microseconds of what was asked.
#pragma once

#include <sched.h>
#include <time.h>

#include <cstdint>

namespace asyncsim {

using Time = int64_t;  // nanoseconds

inline Time now() {
  timespec at{};
  clock_gettime(CLOCK_MONOTONIC, &at);
  return Time(at.tv_sec) * 1'000'000'000 + at.tv_nsec;
}

inline void sleep_until(Time moment) {
  timespec at{moment / 1'000'000'000, moment % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) != 0) {
  }
}

// What a sleeping thread may wake too late by, on a machine that is not overloaded.
constexpr Time kWakeLate = 120'000;

// Sleeps most of the way and spins the rest, as only a spin ends in time.
inline void wait_until(Time moment) {
  if (moment - now() > kWakeLate) sleep_until(moment - kWakeLate);
  while (now() < moment) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
}

}  // namespace asyncsim
