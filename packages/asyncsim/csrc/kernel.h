// A native kernel: the host's arithmetic, done by a stream's thread when its turn comes.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "clock.h"
#include "shapes.h"

namespace asyncsim {

// What is known of an operator once for all its calls.
struct Operator {
  explicit Operator(const c10::OperatorHandle& handle);

  std::string name;                        // without overload: what plans are made for
  c10::OperatorHandle host;                // what the host runs for it
  std::vector<int> written;                // for each result: the argument that it is, or -1
  std::vector<bool> writes;                // for each argument: whether it is written to
  bool in_place = false;                   // it changes arguments and makes nothing, so nothing takes another shape
  int generator = -1;                      // the argument that is a generator
  bool scalar_result = false;              // a result that is no tensor: the host must know it at once
  bool depends_on_values = false;          // the shape of a result does, so the host must wait for it
  ShapeRule rule = nullptr;
  std::atomic<Time> longest{0};            // arithmetic so far

  // How long before its planned end the arithmetic must begin.
  Time margin() const { return 2 * longest.load(std::memory_order_relaxed) + 150'000; }
};

Operator& known(const c10::OperatorHandle& handle);

// Everything that a kernel's turn needs; host tensors over the device's bytes.
struct Call {
  Operator* op;
  torch::jit::Stack arguments;
  std::vector<at::Tensor> results;         // of those that are no arguments, in order; undefined ones too
  std::vector<at::Tensor> inputs;          // that are not written to
  bool expanded = false;

  void run();
};

// The operators of PyTorch that have a kernel here: names with overload.
void register_kernels(const std::vector<std::string>& names);

}  // namespace asyncsim
