// What kernels return, where PyTorch has no fast way to say so.
#pragma once

#include <ATen/core/stack.h>

#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace asyncsim {

struct Shape {
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  at::ScalarType dtype;
};

// One for each result; none where the result is undefined.
using Shapes = std::vector<std::optional<Shape>>;
using ShapeRule = Shapes (*)(const torch::jit::Stack& arguments);

// nullptr where the operator has no rule here.
ShapeRule shape_rule(const std::string& name);

}  // namespace asyncsim
