// A back end of process groups: collectives in stream order, over another that works on the host.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <functional>

#include "queue.h"

namespace asyncsim {

class Collectives final : public c10d::Backend {
 public:
  using Tensors = std::vector<at::Tensor>;
  using Groups = std::vector<Tensors>;
  using Started = c10::intrusive_ptr<c10d::Work>;

  Collectives(c10::intrusive_ptr<c10d::Backend> host, int rank, int size)
      : c10d::Backend(rank, size), host_(std::move(host)) {}

  const std::string getBackendName() const override { return "asyncccl"; }
  void setTimeout(std::chrono::milliseconds timeout) override { host_->setTimeout(timeout); }
  void setSequenceNumberForGroup() override { host_->setSequenceNumberForGroup(); }
  uint64_t getSequenceNumberForGroup() override { return host_->getSequenceNumberForGroup(); }

  Started broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  Started allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  Started allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override;
  Started reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  Started allgather(Groups& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  Started _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;
  Started gather(Groups& outputs, Tensors& inputs, const c10d::GatherOptions& options) override;
  Started scatter(Tensors& outputs, Groups& inputs, const c10d::ScatterOptions& options) override;
  Started reduce_scatter(Tensors& outputs, Groups& inputs, const c10d::ReduceScatterOptions& options) override;
  Started _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override;
  Started alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits,
                        std::vector<int64_t>& input_splits, const c10d::AllToAllOptions& options) override;
  Started alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override;
  Started send(Tensors& tensors, int target, int tag) override;
  Started recv(Tensors& tensors, int source, int tag) override;
  Started barrier(const c10d::BarrierOptions& options) override;

 private:
  // Puts `run`, which starts the host's work, on the stream of collectives; `kept` lives until it ended.
  Started start(c10d::OpType kind, const char* name, Tensors kept, std::function<Started()> run);

  c10::intrusive_ptr<c10d::Backend> host_;
};

}  // namespace asyncsim
