#include "shapes.h"

#include <ATen/WrapDimUtils.h>
#include <ATen/native/ConvUtils.h>

#include <unordered_map>

namespace asyncsim {
namespace {

using torch::jit::Stack;
using Sizes = std::vector<int64_t>;

Sizes contiguous_strides(const Sizes& sizes) {
  Sizes strides(sizes.size());
  int64_t next = 1;
  for (size_t each = sizes.size(); each-- > 0;) {
    strides[each] = next;
    next *= std::max<int64_t>(sizes[each], 1);
  }
  return strides;
}

Sizes strides_for(const Sizes& sizes, at::MemoryFormat format) {
  if (format == at::MemoryFormat::ChannelsLast) return c10::get_channels_last_strides_2d(sizes);
  if (format == at::MemoryFormat::ChannelsLast3d) return c10::get_channels_last_strides_3d(sizes);
  return contiguous_strides(sizes);
}

Shape plain(Sizes sizes, at::ScalarType dtype) {
  auto strides = contiguous_strides(sizes);
  return {std::move(sizes), std::move(strides), dtype};
}

Shape like(const at::Tensor& tensor) {
  if (tensor.is_non_overlapping_and_dense()) return {tensor.sizes().vec(), tensor.strides().vec(), tensor.scalar_type()};
  return plain(tensor.sizes().vec(), tensor.scalar_type());
}

Shapes like_first(const Stack& arguments) { return {like(arguments.at(0).toTensor())}; }

// input, weight, bias, stride, padding, dilation, transposed, output_padding, groups
Shapes convolution(const Stack& arguments) {
  const at::Tensor input = arguments.at(0).toTensor();
  const at::Tensor weight = arguments.at(1).toTensor();
  const auto stride = arguments.at(3).toIntVector();
  const auto padding = arguments.at(4).toIntVector();
  const auto dilation = arguments.at(5).toIntVector();
  const auto more = arguments.at(7).toIntVector();
  Sizes sizes = arguments.at(6).toBool()
                    ? at::native::conv_input_size(input.sizes(), weight.sizes(), padding,
                                                  at::IntArrayRef(more), stride, dilation, arguments.at(8).toInt())
                    : at::native::conv_output_size(input.sizes(), weight.sizes(), padding, stride, dilation);
  const bool last = input.suggest_memory_format() != at::MemoryFormat::Contiguous ||
                    weight.suggest_memory_format() != at::MemoryFormat::Contiguous;
  const auto format = !last ? at::MemoryFormat::Contiguous
                      : sizes.size() == 5 ? at::MemoryFormat::ChannelsLast3d
                                          : at::MemoryFormat::ChannelsLast;
  auto strides = strides_for(sizes, format);
  return {Shape{std::move(sizes), std::move(strides), input.scalar_type()}};
}

// grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups, output_mask
Shapes convolution_backward(const Stack& arguments) {
  const at::Tensor grad = arguments.at(0).toTensor();
  const auto mask = arguments.at(9).toBoolList();
  Shapes found(3);
  if (mask[0]) found[0] = like(arguments.at(1).toTensor());
  if (mask[1]) found[1] = like(arguments.at(2).toTensor());
  if (mask[2]) found[2] = plain({grad.size(1)}, grad.scalar_type());
  return found;
}

at::ScalarType wide(at::ScalarType dtype) {
  return dtype == at::kHalf || dtype == at::kBFloat16 ? at::kFloat : dtype;
}

// input, normalized_shape, weight, bias, eps
Shapes layer_norm(const Stack& arguments) {
  const at::Tensor input = arguments.at(0).toTensor();
  const auto kept = input.dim() - int64_t(arguments.at(1).toIntVector().size());
  TORCH_CHECK(kept >= 0, "Given normalized_shape of more dimensions than the input has");
  Sizes moments = input.sizes().vec();
  for (int64_t each = kept; each < input.dim(); ++each) moments[each] = 1;
  const bool mixed = arguments.at(2).isTensor() && arguments.at(2).toTensor().defined() &&
                     arguments.at(2).toTensor().scalar_type() != input.scalar_type();
  const auto dtype = mixed ? at::kFloat : input.scalar_type();
  return {plain(input.sizes().vec(), input.scalar_type()), plain(moments, dtype), plain(moments, dtype)};
}

// grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask
Shapes layer_norm_backward(const Stack& arguments) {
  const auto mask = arguments.at(7).toBoolList();
  Shapes found(3);
  if (mask[0]) found[0] = plain(arguments.at(1).toTensor().sizes().vec(), arguments.at(1).toTensor().scalar_type());
  if (mask[1] && arguments.at(5).isTensor()) found[1] = like(arguments.at(5).toTensor());
  if (mask[2] && arguments.at(6).isTensor()) found[2] = like(arguments.at(6).toTensor());
  return found;
}

// input, weight, bias, running_mean, running_var, training, momentum, eps
Shapes batch_norm(const Stack& arguments) {
  const at::Tensor input = arguments.at(0).toTensor();
  const int64_t kept = arguments.at(5).toBool() ? input.size(1) : 0;
  const auto weight = arguments.at(1).isTensor() ? arguments.at(1).toTensor() : at::Tensor();
  const auto dtype = weight.defined() ? weight.scalar_type() : wide(input.scalar_type());
  return {like(input), plain({kept}, dtype), plain({kept}, dtype)};
}

// grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask
Shapes batch_norm_backward(const Stack& arguments) {
  const at::Tensor input = arguments.at(1).toTensor();
  const auto mask = arguments.at(9).toBoolList();
  const auto weight = arguments.at(2).isTensor() ? arguments.at(2).toTensor() : at::Tensor();
  const auto dtype = weight.defined() ? weight.scalar_type() : wide(input.scalar_type());
  Shapes found(3);
  if (mask[0]) found[0] = like(input);
  if (mask[1]) found[1] = plain({input.size(1)}, dtype);
  if (mask[2]) found[2] = plain({input.size(1)}, dtype);
  return found;
}

// self, dim, index
Shapes index_select(const Stack& arguments) {
  const at::Tensor self = arguments.at(0).toTensor();
  Sizes sizes = self.sizes().vec();
  if (!sizes.empty()) {
    sizes.at(at::maybe_wrap_dim(arguments.at(1).toInt(), self.dim())) = arguments.at(2).toTensor().numel();
  }
  return {plain(std::move(sizes), self.scalar_type())};
}

// self, output_size
Shapes adaptive_pool(const Stack& arguments) {
  const at::Tensor self = arguments.at(0).toTensor();
  const auto wanted = arguments.at(1).toIntVector();
  Sizes sizes = self.sizes().vec();
  std::copy(wanted.begin(), wanted.end(), sizes.end() - int64_t(wanted.size()));
  auto strides = strides_for(sizes, self.suggest_memory_format());
  return {Shape{std::move(sizes), std::move(strides), self.scalar_type()}};
}

const std::unordered_map<std::string, ShapeRule> kRules = {
    {"aten::convolution_overrideable", convolution},
    {"aten::convolution_backward_overrideable", convolution_backward},
    {"aten::native_layer_norm", layer_norm},
    {"aten::native_layer_norm_backward", layer_norm_backward},
    {"aten::native_batch_norm", batch_norm},
    {"aten::native_batch_norm_backward", batch_norm_backward},
    {"aten::index_select", index_select},
    {"aten::_adaptive_avg_pool2d", adaptive_pool},
    {"aten::relu", like_first},
    {"aten::hardtanh", like_first},
    {"aten::hardswish", like_first},
    {"aten::hardswish_backward", like_first},
    {"aten::native_dropout_backward", like_first},
};

}  // namespace

ShapeRule shape_rule(const std::string& name) {
  const auto found = kRules.find(name);
  return found == kRules.end() ? nullptr : found->second;
}

}  // namespace asyncsim
