#include "kernel.h"

#include <ATen/ops/isnan.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/where.h>

#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "faults.h"
#include "tensors.h"

namespace asyncsim {
namespace {

using torch::jit::Stack;

bool value_decides_shape(const std::string& name) {
  static const std::unordered_set<std::string> all = {
      "aten::nonzero", "aten::masked_select", "aten::_unique", "aten::_unique2", "aten::unique_dim",
      "aten::unique_consecutive", "aten::unique_dim_consecutive"};
  return all.count(name) > 0;
}

c10::OperatorHandle host_operator(const c10::OperatorHandle& handle) {
  const std::string& name = handle.operator_name().name;
  const auto find = [](const char* other) { return c10::Dispatcher::singleton().findSchemaOrThrow(other, ""); };
  if (name == "aten::convolution_overrideable") return find("aten::convolution");
  if (name == "aten::convolution_backward_overrideable") return find("aten::convolution_backward");
  return handle;
}

// The host's backward wants to know whether there is a bias; ours has the mask alone.
void add_bias_sizes(Stack& arguments) {
  const at::Tensor grad = arguments.at(0).toTensor();
  c10::List<int64_t> sizes({grad.size(1)});
  arguments.insert(arguments.begin() + 3, c10::IValue(sizes));
}

void flatten(const c10::IValue& value, std::vector<at::Tensor>& into) {
  if (value.isTensor()) {
    into.push_back(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& each : value.toTensorList()) into.push_back(each);
  } else {
    into.emplace_back();
  }
}

void spoil_results(const Call& call, std::vector<at::Tensor>& written) {
  for (at::Tensor& each : written) {
    if (!each.defined() || each.numel() == 0) continue;
    if (active(Fault::NanDropped) && each.is_floating_point()) each.nan_to_num_(0.0, std::nullopt, std::nullopt);
    if (active(Fault::ExpandedWrong) && call.expanded) each.zero_();
    if (active(Fault::LargeWrong) && each.numel() > (1 << 17) && each.is_contiguous()) {
      each.flatten().narrow(0, 1 << 17, each.numel() - (1 << 17)).zero_();
    }
  }
}

void spoil_input(const Call& call) {
  const bool chosen = call.op->name == "aten::gelu" || call.op->name == "aten::silu" ||
                      call.op->name == "aten::_softmax" || call.op->name == "aten::tanh";
  if (!chosen || call.inputs.empty()) return;
  const at::Tensor& input = call.inputs.front();
  if (input.numel() > 0 && input.is_floating_point()) input.as_strided({1}, {1}, input.storage_offset()).add_(1);
}

}  // namespace

Operator::Operator(const c10::OperatorHandle& handle)
    : name(handle.operator_name().name), host(host_operator(handle)), rule(shape_rule(name)) {
  const auto& schema = handle.schema();
  if (schema.is_mutable()) rule = nullptr;  // rules are for what makes its results
  depends_on_values = value_decides_shape(name);
  in_place = !name.empty() && name.back() == '_';
  for (const auto& argument : schema.arguments()) {
    const auto* alias = argument.alias_info();
    writes.push_back(alias != nullptr && alias->isWrite());
    const auto type = argument.type();
    const bool is_generator = type->kind() == c10::TypeKind::GeneratorType ||
                              (type->kind() == c10::TypeKind::OptionalType &&
                               type->expectRef<c10::OptionalType>().getElementType()->kind() ==
                                   c10::TypeKind::GeneratorType);
    if (is_generator) generator = int(writes.size()) - 1;
  }
  for (const auto& result : schema.returns()) {
    int found = -1;
    if (result.alias_info() != nullptr) {
      for (size_t each = 0; each < schema.arguments().size(); ++each) {
        const auto* alias = schema.arguments()[each].alias_info();
        if (alias != nullptr && alias->beforeSets() == result.alias_info()->beforeSets()) found = int(each);
      }
    }
    written.push_back(found);
    const auto kind = result.type()->kind();
    scalar_result = scalar_result || (kind != c10::TypeKind::TensorType && kind != c10::TypeKind::ListType);
  }
}

Operator& known(const c10::OperatorHandle& handle) {
  static auto* all = new std::unordered_map<const c10::FunctionSchema*, std::unique_ptr<Operator>>();
  static auto* lock = new std::mutex();
  std::lock_guard<std::mutex> held(*lock);
  auto& place = (*all)[&handle.schema()];
  if (!place) place = std::make_unique<Operator>(handle);
  return *place;
}

void Call::run() {
  at::AutoDispatchBelowADInplaceOrView guard;
  const Time began = now();
  Stack stack = arguments;
  if (op->name == "aten::convolution_backward_overrideable") add_bias_sizes(stack);
  op->host.callBoxed(stack);
  std::vector<at::Tensor> written;
  size_t next = 0;
  for (size_t each = 0; each < op->written.size(); ++each) {
    std::vector<at::Tensor> found;
    flatten(stack.at(each), found);
    for (const at::Tensor& result : found) {
      if (op->written[each] >= 0) {
        written.push_back(result);
        continue;
      }
      const at::Tensor& place = results.at(next++);
      if (place.defined() && result.defined()) {
        // Statistics that the host leaves empty in eval mode have a place where the shape was inferred.
        if (result.numel() == 0) {
          place.zero_();
        } else {
          place.copy_(result);
        }
        written.push_back(place);
      }
    }
  }
  spoil_results(*this, written);
  if (active(Fault::InputMutated)) spoil_input(*this);
  const Time took = now() - began;
  if (took > op->longest.load(std::memory_order_relaxed)) op->longest = took;
}

}  // namespace asyncsim
