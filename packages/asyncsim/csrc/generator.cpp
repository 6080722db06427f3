#include "generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Utils.h>
#include <ATen/core/GeneratorForPrivateuseone.h>
#include <c10/core/GeneratorImpl.h>

#include <array>
#include <cstring>

#include "faults.h"
#include "runtime.h"

namespace asyncsim {
namespace {

struct State {
  uint64_t seed = c10::default_rng_seed_val;
  uint64_t drawn = 0;
};

class Generator final : public c10::GeneratorImpl {
 public:
  explicit Generator(int device)
      : c10::GeneratorImpl({c10::DeviceType::PrivateUse1, c10::DeviceIndex(device)},
                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}

  void set_current_seed(uint64_t seed) override {
    if (active(Fault::SeedIgnored)) return;
    state_ = {seed, 0};
  }
  void set_offset(uint64_t offset) override { state_.drawn = offset; }
  uint64_t get_offset() const override { return state_.drawn; }
  uint64_t current_seed() const override { return state_.seed; }
  uint64_t seed() override {
    const uint64_t fresh = c10::detail::getNonDeterministicRandom();
    set_current_seed(fresh);
    return fresh;
  }
  void set_state(const c10::TensorImpl& state) override {
    at::detail::check_rng_state(state);
    TORCH_CHECK(state.numel() == int64_t(sizeof(State)), "RNG state is wrong size");
    if (!active(Fault::RngStateIgnored)) std::memcpy(&state_, state.data(), sizeof(State));
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    auto state = at::detail::empty_cpu({int64_t(sizeof(State))}, at::kByte);
    std::memcpy(state.data_ptr(), &state_, sizeof(State));
    return state.getIntrusivePtr();
  }

  // splitmix64 of seed and count: neighbours have nothing in common.
  uint64_t next() {
    uint64_t mixed = state_.seed + 0x9e3779b97f4a7c15ULL * ++state_.drawn;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
    return mixed ^ (mixed >> 31);
  }

 private:
  Generator* clone_impl() const override {
    auto* copy = new Generator(device().index());
    copy->state_ = state_;
    return copy;
  }

  State state_;
};

}  // namespace

const at::Generator& default_generator(int device) {
  static auto* all = new std::array<at::Generator, kDevices>{make_generator(0), make_generator(1)};
  return all->at(device < 0 ? current_device() : device);
}

at::Generator make_generator(int device) {
  return at::make_generator<Generator>(device < 0 ? current_device() : device);
}

at::Generator for_one_kernel(const std::optional<at::Generator>& generator, int device) {
  at::Generator used = generator.has_value() && generator->defined() ? *generator : default_generator(device);
  TORCH_CHECK(used.device().type() == c10::DeviceType::PrivateUse1, "Expected a 'asyncsim' device type for generator but found '",
              used.device().type(), "'");
  std::lock_guard<std::mutex> held(used.mutex());
  return at::detail::createCPUGenerator(static_cast<Generator*>(used.unsafeGetGeneratorImpl())->next());
}

}  // namespace asyncsim
