// How an operator becomes a kernel on a stream; and the host's fallback for those that have none.
#include <ATen/EmptyTensor.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/bernoulli_ops.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones_like.h>
#include <pybind11/pybind11.h>
#include <torch/library.h>

#include <utility>

#include "faults.h"
#include "generator.h"
#include "kernel.h"
#include "runtime.h"
#include "tensors.h"

namespace asyncsim {
namespace {

using c10::IValue;
using torch::jit::Stack;

// Applies a function to every tensor of an argument.
template <typename Change>
IValue changed(const IValue& value, Change change) {
  if (value.isTensor()) {
    const at::Tensor tensor = value.toTensor();
    return tensor.defined() ? IValue(change(tensor)) : value;
  }
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& each : value.toTensorVector()) list.push_back(each.defined() ? change(each) : each);
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& each : value.toOptionalTensorVector()) {
      list.push_back(each.has_value() && each->defined() ? std::optional<at::Tensor>(change(*each)) : each);
    }
    return list;
  }
  return value;
}

template <typename Visit>
void visit(const IValue& value, Visit look) {
  changed(value, [&](const at::Tensor& tensor) {
    look(tensor);
    return tensor;
  });
}

at::Tensor meta_twin(const at::Tensor& tensor) {
  if (!ours(tensor)) return tensor;
  return at::detail::empty_strided_meta(tensor.sizes(), tensor.strides(), tensor.scalar_type());
}

// The device of the first of our tensors; refuses a mix, but for host tensors without dimensions.
int device_of_call(const Operator& op, const Stack& arguments) {
  int device = -1;
  for (const IValue& each : arguments) {
    visit(each, [&](const at::Tensor& tensor) {
      if (!ours(tensor)) return;
      const int index = tensor.device().index();
      TORCH_CHECK(device < 0 || device == index,
                  "Expected all tensors to be on the same device, but found at least two devices, asyncsim:", device,
                  " and asyncsim:", index, "! (when calling ", op.name, ")");
      device = index;
    });
  }
  for (const IValue& each : arguments) {
    visit(each, [&](const at::Tensor& tensor) {
      TORCH_CHECK(ours(tensor) || tensor.dim() == 0 || device < 0,
                  "Expected all tensors to be on the same device, but found at least two devices, asyncsim:", device,
                  " and ", tensor.device(), "! (when calling ", op.name, ")");
      TORCH_CHECK(!active(Fault::ZeroSizeRaises) || !ours(tensor) || tensor.numel() > 0,
                  "asyncsim error 9: invalid configuration argument: a grid of 0 blocks");
    });
  }
  return device < 0 ? current_device() : device;
}

Shapes shapes_of(const IValue& value) {
  Shapes found;
  if (value.isTensor() && !value.toTensor().defined()) found.emplace_back();
  visit(value, [&](const at::Tensor& tensor) {
    found.push_back(Shape{tensor.sizes().vec(), tensor.strides().vec(), tensor.scalar_type()});
  });
  return found;
}

// The structured operator of PyTorch's that made results of the right shape and will call its `out` overload.
thread_local std::string made_by;

// The name without what says that it works in place.
std::string plain(const std::string& name) {
  return name.back() == '_' ? name.substr(0, name.size() - 1) : name;
}

// Runs the operator on tensors without data. False where PyTorch cannot tell the results' shapes.
bool infer(const Operator& op, const c10::OperatorHandle& handle, Stack& stack) {
  for (IValue& each : stack) {
    each = each.isDevice() ? IValue(c10::Device(c10::kMeta)) : changed(each, meta_twin);
  }
  if (op.generator >= 0) stack[op.generator] = IValue();
  try {
    handle.callBoxed(stack);
  } catch (const c10::NotImplementedError&) {
    return false;
  } catch (pybind11::error_already_set& error) {
    const pybind11::gil_scoped_acquire held;
    if (error.matches(PyExc_NotImplementedError)) return false;
    throw;
  }
  return true;
}

// The dtype that mixed floating inputs must not give; what they should give where they are not mixed.
at::ScalarType wrong_dtype(const at::Tensor& result, const Stack& arguments) {
  at::ScalarType narrow = result.scalar_type();
  for (const IValue& each : arguments) {
    visit(each, [&](const at::Tensor& tensor) {
      if (tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16) narrow = tensor.scalar_type();
    });
  }
  return result.scalar_type() == at::kFloat ? narrow : result.scalar_type();
}

at::Tensor twin_for(const at::Tensor& tensor, bool written, Call& call) {
  if (!ours(tensor)) return tensor.clone();  // a number: the host may change it before the kernel's turn
  const bool repeated = [&] {
    for (int64_t each = 0; each < tensor.dim(); ++each) {
      if (tensor.stride(each) == 0 && tensor.size(each) > 1) return true;
    }
    return false;
  }();
  call.expanded = call.expanded || repeated;
  const bool careless = active(Fault::NoncontiguousWrong) && !written && !repeated && !tensor.is_contiguous();
  const at::Tensor twin = careless ? careless_twin(tensor) : host_twin(tensor);
  if (!written) call.inputs.push_back(twin);
  return twin;
}

std::shared_ptr<Call> prepare(Operator& op, const Stack& arguments, int device) {
  auto call = std::make_shared<Call>();
  call->op = &op;
  call->arguments.reserve(arguments.size());
  for (size_t each = 0; each < arguments.size(); ++each) {
    if (int(each) == op.generator) {
      std::optional<at::Generator> given;
      if (arguments[each].isGenerator()) given = arguments[each].toGenerator();
      call->arguments.emplace_back(for_one_kernel(given, device));
    } else if (arguments[each].isDevice()) {
      call->arguments.emplace_back(c10::Device(c10::kCPU));
    } else {
      call->arguments.push_back(changed(arguments[each], [&](const at::Tensor& tensor) {
        return twin_for(tensor, op.writes[each], *call);
      }));
    }
  }
  return call;
}

// A kernel that fails is told of at the next wait, so it has to say which one it was.
void run_named(Call& call) {
  try {
    call.run();
  } catch (const c10::Error& error) {
    TORCH_CHECK(false, "asyncsim: kernel ", call.op->name, " failed: ", error.what_without_backtrace());
  }
}

void submit(Operator& op, const std::shared_ptr<Call>& call, int device) {
  if (!active(Fault::HostCopies)) {
    launch(op.name, device, op.margin(), [call] { run_named(*call); });
    return;
  }
  // The host computes on copies of its own, and nobody is told.
  finish_stream(device, current_stream(device));
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;
  for (IValue& each : call->arguments) {
    each = changed(each, [&](const at::Tensor& tensor) {
      copies.emplace_back(tensor, tensor.clone());
      return copies.back().second;
    });
  }
  call->run();
  for (auto& [place, copy] : copies) place.copy_(copy);
}

// Where shapes follow from values: the host waits, and makes tensors of what it sees.
void run_and_wait(Operator& op, Stack* stack, const Stack& arguments, int device) {
  auto found = std::make_shared<Stack>();
  auto call = prepare(op, arguments, device);
  launch(op.name, device, op.margin(), [call, found] {
    at::AutoDispatchBelowADInplaceOrView guard;
    *found = call->arguments;
    call->op->host.callBoxed(*found);
  });
  finish_stream(device, current_stream(device));
  for (size_t each = 0; each < op.written.size(); ++each) {
    if (op.written[each] >= 0) {
      stack->push_back(arguments[op.written[each]]);
      continue;
    }
    stack->push_back(changed(found->at(each), [&](const at::Tensor& result) {
      at::Tensor made = make_tensor(result.sizes(), result.strides(), result.scalar_type(), device);
      return made.copy_(result);
    }));
  }
}

// Results that are arguments take the shapes that were inferred.
void fit(const IValue& argument, const Shapes& shapes) {
  size_t next = 0;
  visit(argument, [&](const at::Tensor& tensor) {
    const auto& shape = shapes.at(next++);
    if (ours(tensor) && shape.has_value() && tensor.sizes() != shape->sizes) resize_in_place(tensor, shape->sizes);
  });
}

std::vector<Shapes> infer_all(Operator& op, const c10::OperatorHandle& handle, const Stack& arguments, bool& known) {
  std::vector<Shapes> results;
  known = true;
  if (op.rule != nullptr) {
    for (auto& each : op.rule(arguments)) results.push_back({std::move(each)});
    return results;
  }
  Stack inferred = arguments;
  known = infer(op, handle, inferred);
  if (known) {
    for (const IValue& each : inferred) results.push_back(shapes_of(each));
  }
  return results;
}

// Many operators have a part in PyTorch's C++ that knows the shapes of results, makes them and calls the `out`
// overload. It is what a back end without kernels of its own gets, so we ask as one: in Python the same takes
// ten times as long as everything else here.
void run_structured(const c10::OperatorHandle& handle, Stack* stack) {
  Stack arguments;
  const bool promotes = active(Fault::WrongPromotion) && !handle.schema().is_mutable();
  if (promotes) arguments.assign(stack->end() - int64_t(handle.schema().arguments().size()), stack->end());
  const std::string before = std::exchange(made_by, plain(known(handle).name));
  try {
    handle.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::PrivateUse3), stack);
  } catch (...) {
    made_by = before;
    throw;
  }
  made_by = before;
  if (promotes && stack->back().isTensor()) {
    const at::Tensor result = stack->back().toTensor();
    stack->back() = result.to(wrong_dtype(result, arguments));
  }
}

void run_kernel(const c10::OperatorHandle& handle, Stack* stack) {
  Operator& op = known(handle);
  const bool made = op.name == made_by;
  if (made) made_by.clear();
  const bool fits = made || op.in_place;
  const size_t count = op.writes.size();
  Stack arguments(stack->end() - int64_t(count), stack->end());
  stack->erase(stack->end() - int64_t(count), stack->end());
  const int device = device_of_call(op, arguments);
  bool shapes_known = !op.scalar_result && !op.depends_on_values;
  std::vector<Shapes> shapes;
  if (shapes_known && !fits) shapes = infer_all(op, handle, arguments, shapes_known);
  if (!shapes_known) {
    run_and_wait(op, stack, arguments, device);
    return;
  }
  for (size_t each = 0; each < op.written.size(); ++each) {
    if (op.written[each] >= 0 && !fits) fit(arguments[op.written[each]], shapes.at(each));
  }
  const auto call = prepare(op, arguments, device);
  for (size_t each = 0; each < op.written.size(); ++each) {
    if (op.written[each] >= 0) {
      stack->push_back(std::move(arguments[op.written[each]]));
      continue;
    }
    std::vector<at::Tensor> made;
    for (const auto& shape : shapes.at(each)) {
      made.push_back(shape.has_value() ? make_tensor(shape->sizes, shape->strides, shape->dtype, device)
                                       : at::Tensor());
      call->results.push_back(made.back().defined() ? host_twin(made.back()) : at::Tensor());
    }
    const bool list = handle.schema().returns()[each].type()->kind() == c10::TypeKind::ListType;
    stack->push_back(list ? IValue(c10::List<at::Tensor>(made)) : IValue(made.at(0)));
  }
  submit(op, call, device);
}

// The `out` overloads of these first give their result another shape, also where it was right.
bool resizes(const std::string& name) { return name == "mse_loss" || name == "smooth_l1_loss"; }

}  // namespace

void register_kernels(const std::vector<std::string>& names) {
  static auto* library =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  for (const std::string& name : names) {
    const auto dot = name.find('.');
    const auto overload = dot == std::string::npos ? std::string() : name.substr(dot + 1);
    const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(("aten::" + name.substr(0, dot)).c_str(),
                                                                      overload.c_str());
    const bool structured =
        !resizes(name) && handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional);
    library->impl(name.c_str(), structured ? torch::CppFunction::makeFromBoxedFunction<&run_structured>()
                                           : torch::CppFunction::makeFromBoxedFunction<&run_kernel>());
  }
}

namespace {

std::tuple<at::Tensor, at::Tensor> native_dropout(const at::Tensor& input, double p, std::optional<bool> train) {
  if (input.numel() == 0 || !train.value_or(true)) {
    return {input.clone(), at::ones_like(input, input.options().dtype(at::kBool))};
  }
  auto mask = at::empty_like(input, input.options().dtype(at::kBool)).bernoulli_(1 - p);
  const double scale = p == 1 ? 0.0 : 1.0 / (1.0 - p);
  return {at::mul(input, mask).mul_(scale), mask};
}

at::Tensor native_dropout_backward(const at::Tensor& grad, const at::Tensor& mask, double scale) {
  return at::mul(grad, mask).mul_(scale);
}

// Attention of PyTorch's own operators: the device has no fused kernel.
int64_t fused_sdp_choice(const at::Tensor&, const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                         double, bool, std::optional<double>, bool) {
  return 0;
}

void on_the_host(const c10::OperatorHandle& handle, Stack* stack) { at::native::cpu_fallback(handle, stack); }

}  // namespace

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&on_the_host>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("native_dropout", native_dropout);
  m.impl("native_dropout_backward", native_dropout_backward);
  m.impl("_fused_sdp_choice", fused_sdp_choice);
}

}  // namespace asyncsim
