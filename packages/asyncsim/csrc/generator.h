// The device's random numbers: a seed and how many kernels have drawn from it.
#pragma once

#include <ATen/core/Generator.h>

namespace asyncsim {

const at::Generator& default_generator(int device);
at::Generator make_generator(int device);
// A generator of the host for one kernel; moves `generator` (undefined: the default one) on.
at::Generator for_one_kernel(const std::optional<at::Generator>& generator, int device);

}  // namespace asyncsim
