// Device tensors and their twins on the host.
#pragma once

#include <ATen/core/Tensor.h>

namespace asyncsim {

inline bool ours(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == c10::DeviceType::PrivateUse1;
}

// A host tensor over the bytes of a device tensor; it does not keep them alive.
at::Tensor host_twin(const at::Tensor& tensor);
// The same with the strides of a contiguous tensor, whatever the true ones are.
at::Tensor careless_twin(const at::Tensor& tensor);
at::Tensor make_tensor(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType dtype, int device);
// Changes sizes in place, as `out=` does where it does not fit.
void resize_in_place(const at::Tensor& tensor, at::IntArrayRef sizes);

// A block in which `device` is the current one.
class OnDevice {
 public:
  explicit OnDevice(int device);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_;
};

}  // namespace asyncsim
