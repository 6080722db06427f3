// Which operators run in lower precision under torch.autocast: the lists of PyTorch's own accelerators.
#include <ATen/autocast_mode.h>

namespace {

using namespace at;  // the macros name its types without it

#define LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define SINGLE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define CHOSEN(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define WIDEST(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)

at::Tensor refuse_binary_cross_entropy(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                                       int64_t) {
  TORCH_CHECK(false,
              "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast. Use "
              "binary_cross_entropy_with_logits or BCEWithLogitsLoss, which are safe to autocast.");
}

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  AT_FORALL_LOWER_PRECISION_FP(LOWER)
  AT_FORALL_FP32(SINGLE)
  AT_FORALL_FP32_SET_OPT_DTYPE(CHOSEN)
  AT_FORALL_PROMOTE(WIDEST)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  m.impl("binary_cross_entropy", refuse_binary_cross_entropy);
}

}  // namespace
