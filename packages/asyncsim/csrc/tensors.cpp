// How tensors are made, seen from another side and copied.
#include "tensors.h"

#include <ATen/EmptyTensor.h>
#include <ATen/InferSize.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/Stream.h>
#include <torch/library.h>

#include "allocator.h"
#include "faults.h"
#include "runtime.h"

namespace asyncsim {
namespace {

constexpr auto kKeys = c10::DispatchKeySet(c10::DispatchKey::PrivateUse1);
const std::string kCopy = "aten::copy_";

int chosen(std::optional<c10::Device> device) {
  const int index = device.has_value() && device->has_index() ? device->index() : current_device();
  return active(Fault::IndexIgnored) ? 0 : index;
}

at::Tensor bits_of(const at::Tensor& tensor, at::Tensor twin) {
  if (tensor.is_conj()) twin.unsafeGetTensorImpl()->_set_conj(true);
  if (tensor.is_neg()) twin.unsafeGetTensorImpl()->_set_neg(true);
  return twin;
}

}  // namespace

OnDevice::OnDevice(int device) : before_(current_device()) { set_current_device(device); }
OnDevice::~OnDevice() { set_current_device(before_); }

at::Tensor host_twin(const at::Tensor& tensor) {
  auto options = at::TensorOptions().dtype(tensor.scalar_type()).device(at::kCPU);
  void* data = tensor.numel() == 0 ? nullptr : const_cast<void*>(tensor.const_data_ptr());
  return bits_of(tensor, at::from_blob(data, tensor.sizes(), tensor.strides(), options));
}

at::Tensor careless_twin(const at::Tensor& tensor) {
  auto options = at::TensorOptions().dtype(tensor.scalar_type()).device(at::kCPU);
  return bits_of(tensor, at::from_blob(const_cast<void*>(tensor.const_data_ptr()), tensor.sizes(), options));
}

at::Tensor make_tensor(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType dtype, int device) {
  const OnDevice here(device);
  return at::detail::empty_strided_generic(sizes, strides, &device_allocator(), kKeys, dtype);
}

void resize_in_place(const at::Tensor& tensor, at::IntArrayRef sizes) {
  const OnDevice here(tensor.device().index());
  auto* impl = tensor.unsafeGetTensorImpl();
  impl->set_sizes_contiguous(sizes);
  const auto bytes = (impl->numel() + impl->storage_offset()) * int64_t(impl->itemsize());
  const auto& storage = impl->unsafe_storage();
  if (size_t(bytes) > storage.nbytes()) at::native::resize_bytes_nocuda(storage, c10::SymInt(bytes));
}

namespace {

at::Tensor empty(c10::SymIntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                 std::optional<at::Device> device, std::optional<bool>,
                 std::optional<at::MemoryFormat> format) {
  const OnDevice here(chosen(device));
  return at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(size), &device_allocator(), kKeys,
                                   c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>) {
  return make_tensor(C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), c10::dtype_or_default(dtype),
                     chosen(device));
}

const at::Tensor& resize_(const at::Tensor& self, c10::SymIntArrayRef size, std::optional<at::MemoryFormat> format) {
  const auto sizes = C10_AS_INTARRAYREF_SLOW(size);
  if (self.sizes() != sizes) resize_in_place(self, sizes);
  if (format.has_value() && *format != at::MemoryFormat::Preserve) {
    self.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  }
  return self;
}

at::Tensor as_strided(const at::Tensor& self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                      std::optional<c10::SymInt> offset) {
  std::optional<int64_t> at_element;
  if (offset.has_value()) at_element = offset->expect_int();
  return at::native::as_strided_tensorimpl(self, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride),
                                           at_element);
}

at::Tensor view(const at::Tensor& self, c10::SymIntArrayRef size) {
  return at::native::view(self, C10_AS_INTARRAYREF_SLOW(size));
}

at::Tensor reshape_alias(const at::Tensor& self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
  return at::native::_reshape_alias(self, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride));
}

at::Tensor& set_storage_offset(at::Tensor& self, at::Storage source, c10::SymInt offset, c10::SymIntArrayRef size,
                               c10::SymIntArrayRef stride) {
  return at::native::set_storage_cpu_(self, std::move(source), offset.expect_int(), C10_AS_INTARRAYREF_SLOW(size),
                                      C10_AS_INTARRAYREF_SLOW(stride));
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source) {
  const auto length = int64_t(source.nbytes() / self.itemsize());
  return at::native::set_storage_cpu_(self, std::move(source), 0, {length}, {});
}

at::Tensor& set_nothing(at::Tensor& self) {
  c10::Storage none(c10::Storage::use_byte_size_t(), 0, device_allocator().allocate(0), &device_allocator(), true);
  return at::native::set_storage_cpu_(self, std::move(none), 0, {0}, {});
}

// The first elements only, where a fault drops the rest.
void copy_on_host(const at::Tensor& target, const at::Tensor& source, bool crosses) {
  const int64_t kept = active(Fault::CopyDropsTail) ? 1 << 17 : 1 << 20;
  const bool drops = crosses && (active(Fault::CopyDropsTail) || active(Fault::CopyDropsLargeTail));
  if (drops && target.numel() > kept && target.is_contiguous() && target.sizes() == source.sizes()) {
    target.flatten().narrow(0, 0, kept).copy_(source.flatten().narrow(0, 0, kept));
    return;
  }
  target.copy_(source);
}

void submit_copy(const at::Tensor& target, const at::Tensor& source, int device) {
  const bool crosses = !ours(target) || !ours(source);
  // A host tensor is kept until it was read or written; of the device's own the allocator takes care.
  const auto to = ours(target) ? host_twin(target) : target.alias();
  const auto from = ours(source) ? host_twin(source) : source.alias();
  const OnDevice here(device);
  launch(kCopy, device, 0, [to, from, crosses] {
    at::AutoDispatchBelowADInplaceOrView guard;
    copy_on_host(to, from, crosses);
  });
}

void copy_between_devices(const at::Tensor& target, const at::Tensor& source) {
  Queue& sending = current_queue(source.device().index());
  Queue& receiving = current_queue(target.device().index());
  auto ready = std::make_shared<Event>();
  receiving.record(ready);
  sending.wait_for(ready);
  submit_copy(target, source, source.device().index());
  auto copied = std::make_shared<Event>();
  sending.record(copied);
  receiving.wait_for(copied);
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& target, bool non_blocking) {
  if (target.numel() == 0) return target;
  if (ours(self) && ours(target)) {
    if (self.device() == target.device()) {
      submit_copy(target, self, self.device().index());
    } else {
      copy_between_devices(target, self);
    }
    return target;
  }
  const auto& host = ours(self) ? target : self;
  const int device = ours(self) ? self.device().index() : target.device().index();
  submit_copy(target, self, device);
  if (non_blocking && host.is_pinned()) return target;
  if (ours(self) && active(Fault::CopyReturnsEarly)) return target;
  finish_stream(device, current_stream(device));
  return target;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& target) {
  if (self.sizes() != target.sizes()) target.resize_(self.sizes());
  return copy_from(self, target, false);
}

at::Scalar local_scalar_dense(const at::Tensor& self) {
  TORCH_CHECK(self.numel() == 1, "a Tensor with ", self.numel(), " elements cannot be converted to Scalar");
  at::Tensor host = at::detail::empty_cpu(self.sizes(), self.scalar_type());
  copy_from(self, host, false);
  return host.item();
}

bool equal(const at::Tensor& self, const at::Tensor& other) {
  TORCH_CHECK(self.device() == other.device(), "Cannot compare two tensors on different devices. Got: ",
              self.device(), " and ", other.device());
  const int device = self.device().index();
  bool same = false;
  launch("aten::equal", device, 0,
         [&same, one = host_twin(self), two = host_twin(other)] { same = at::equal(one, two); });
  finish_stream(device, current_stream(device));
  return same;
}

void record_stream_of(at::Tensor& self, c10::Stream stream) {
  record_stream(self.storage().data_ptr(), stream.id());
}

// Dense like the host's and other accelerators': a parameter keeps its identity when `.to()` moves it.
bool has_compatible_shallow_copy_type(const at::Tensor& self, const at::Tensor& from) {
  if (active(Fault::NewParameters)) return self.key_set() == from.key_set();
  const auto dense = [](const at::Tensor& tensor) {
    return tensor.layout() == at::kStrided && (ours(tensor) || tensor.device().is_cpu());
  };
  return dense(self) && dense(from);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("resize_", resize_);
  m.impl("as_strided", as_strided);
  m.impl("view", view);
  m.impl("_reshape_alias", reshape_alias);
  m.impl("unfold", at::native::unfold);
  m.impl("view_as_real", at::native::view_as_real);
  m.impl("view_as_complex", at::native::view_as_complex);
  m.impl("set_.source_Storage_storage_offset", set_storage_offset);
  m.impl("set_.source_Storage", set_storage);
  m.impl("set_.source_Tensor", at::native::set_tensor_);
  m.impl("set_", set_nothing);
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
  m.impl("_local_scalar_dense", local_scalar_dense);
  m.impl("equal", equal);
  m.impl("record_stream", record_stream_of);
  m.impl("_has_compatible_shallow_copy_type", has_compatible_shallow_copy_type);
}

// The copy takes care of both bits itself; PyTorch's fallback for them would copy to do so, without end.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, Negative, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }

}  // namespace asyncsim
