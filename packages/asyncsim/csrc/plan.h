// How long kernels take: the truth that measurements are held to.
#pragma once

#include <optional>
#include <string>

#include "clock.h"

namespace asyncsim {

// Nanoseconds for every overload of an operator ("aten::mm"); "*" is for all that have no plan of their own.
void plan_kernel(const std::string& name, std::optional<Time> duration);
void forget_plans();
// Negative where the kernel takes as long as its arithmetic does.
Time planned(const std::string& name);

// Nanoseconds that the host is busy with each launch, beyond what launching takes anyway.
void plan_launch(Time duration);
Time planned_launch();

}  // namespace asyncsim
