// Faults that a test can ask of the device; the README says what each does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace asyncsim {

enum class Fault : uint8_t {
  SyncReturnsEarly, EventsZero, EventsInMicroseconds, EventsInSeconds, EventsNegative, EventsTooLong,
  EventsStampedOnHost, ClocksLieTogether, QueryAlwaysTrue, RecordEventIgnored, WaitEventIgnored,
  StreamOrderViolated, RecordStreamIgnored, CopyReturnsEarly, CopyDropsTail, CopyDropsLargeTail, IndexIgnored,
  OomIsPlain, ForkUnnoticed, HostCopies, InputMutated, NoncontiguousWrong, ExpandedWrong, ZeroSizeRaises,
  LargeWrong, WrongPromotion, NanDropped, PeakNeverReset, MemoryZero, SeedIgnored, RngStateIgnored,
  MemoryInfoHangs, DeviceCountChanges, CollectiveWrongSum, CollectiveHangs, NewParameters, kCount
};

// What the Python half names: ("sync-returns-early", "lost-after", ...).
std::vector<std::string> fault_names();

// Raises std::invalid_argument for a name that is no fault, or a value where none belongs.
void set_fault(const std::string& name, bool on);
bool active(Fault fault);

// The device is lost for good after this many kernels; negative: never.
void set_lost_after(int64_t kernels);
// Counts one kernel; false once the device is lost.
bool device_answers();
void count_kernel();

}  // namespace asyncsim
