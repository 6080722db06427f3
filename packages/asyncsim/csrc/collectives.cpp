#include "collectives.h"

#include <unistd.h>

#include "faults.h"
#include "runtime.h"
#include "tensors.h"

namespace asyncsim {
namespace {

using c10d::OpType;
using Tensors = Collectives::Tensors;
using Groups = Collectives::Groups;
using Started = Collectives::Started;

// The stream that collectives have for themselves, so that kernels go on beside them.
constexpr int64_t kStream = kStreams - 1;

// A collective on its stream; whoever waits makes the current stream wait, as with other accelerators.
class OnStream final : public c10d::Work {
 public:
  OnStream(int rank, OpType kind, int device, Tensors kept)
      : c10d::Work(rank, kind), device_(device), kept_(std::move(kept)), end_(std::make_shared<Event>()) {
    const c10::Device place(c10::DeviceType::PrivateUse1, c10::DeviceIndex(device));
    future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()),
                                                       std::vector<c10::Device>{place});
  }

  bool isCompleted() override { return end_->done(); }
  bool isSuccess() const override { return true; }
  std::vector<at::Tensor> result() override { return kept_; }
  void synchronize() override { current_queue(device_).wait_for(end_); }
  bool wait(std::chrono::milliseconds) override {
    synchronize();
    return true;
  }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

  // What was submitted on the current stream, that of collectives, is all that the results wait for.
  void submitted() { future_->markCompleted(c10::IValue(kept_)); }
  const std::shared_ptr<Event>& end() const { return end_; }

 private:
  int device_;
  Tensors kept_;
  std::shared_ptr<Event> end_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

Tensors twins(const Tensors& tensors) {
  Tensors found;
  for (const at::Tensor& each : tensors) found.push_back(ours(each) ? host_twin(each) : each);
  return found;
}

Groups twins(const Groups& groups) {
  Groups found;
  for (const Tensors& each : groups) found.push_back(twins(each));
  return found;
}

Tensors together(const Tensors& tensors, const Groups& groups) {
  Tensors found = tensors;
  for (const Tensors& each : groups) found.insert(found.end(), each.begin(), each.end());
  return found;
}

}  // namespace

Started Collectives::start(OpType kind, const char* name, Tensors kept, std::function<Started()> run) {
  const int device = kept.empty() || !ours(kept.front()) ? current_device() : kept.front().device().index();
  Queue& stream = queue(device, kStream);
  auto ready = std::make_shared<Event>();
  current_queue(device).record(ready);
  stream.wait_for(ready);
  auto work = c10::make_intrusive<OnStream>(getRank(), kind, device, std::move(kept));
  const int64_t before = exchange_stream(device, kStream);
  launch(name, device, 0, [run = std::move(run)] {
    while (active(Fault::CollectiveHangs)) pause();
    run()->wait();
  });
  work->submitted();
  exchange_stream(device, before);
  stream.record(work->end());
  return work;
}

Started Collectives::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  return start(OpType::BROADCAST, "c10d::broadcast", tensors, [host = host_, data = twins(tensors), options]() mutable {
    return host->broadcast(data, options);
  });
}

Started Collectives::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  return start(OpType::ALLREDUCE, "c10d::allreduce", tensors, [host = host_, data = twins(tensors), options]() mutable {
    auto work = host->allreduce(data, options);
    if (active(Fault::CollectiveWrongSum)) {
      work->wait();
      for (at::Tensor& each : data) each.mul_(2);
    }
    return work;
  });
}

Started Collectives::allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
  return start(OpType::ALLREDUCE_COALESCED, "c10d::allreduce", tensors,
               [host = host_, data = twins(tensors), options]() mutable {
                 return host->allreduce_coalesced(data, options);
               });
}

Started Collectives::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  return start(OpType::REDUCE, "c10d::reduce", tensors, [host = host_, data = twins(tensors), options]() mutable {
    return host->reduce(data, options);
  });
}

Started Collectives::allgather(Groups& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  return start(OpType::ALLGATHER, "c10d::allgather", together(inputs, outputs),
               [host = host_, out = twins(outputs), in = twins(inputs), options]() mutable {
                 return host->allgather(out, in, options);
               });
}

Started Collectives::_allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) {
  return start(OpType::_ALLGATHER_BASE, "c10d::allgather", {output, input},
               [host = host_, out = host_twin(output), in = host_twin(input), options]() mutable {
                 return host->_allgather_base(out, in, options);
               });
}

Started Collectives::gather(Groups& outputs, Tensors& inputs, const c10d::GatherOptions& options) {
  return start(OpType::GATHER, "c10d::gather", together(inputs, outputs),
               [host = host_, out = twins(outputs), in = twins(inputs), options]() mutable {
                 return host->gather(out, in, options);
               });
}

Started Collectives::scatter(Tensors& outputs, Groups& inputs, const c10d::ScatterOptions& options) {
  return start(OpType::SCATTER, "c10d::scatter", together(outputs, inputs),
               [host = host_, out = twins(outputs), in = twins(inputs), options]() mutable {
                 return host->scatter(out, in, options);
               });
}

Started Collectives::reduce_scatter(Tensors& outputs, Groups& inputs, const c10d::ReduceScatterOptions& options) {
  return start(OpType::REDUCE_SCATTER, "c10d::reduce_scatter", together(outputs, inputs),
               [host = host_, out = twins(outputs), in = twins(inputs), options]() mutable {
                 return host->reduce_scatter(out, in, options);
               });
}

Started Collectives::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                          const c10d::ReduceScatterOptions& options) {
  return start(OpType::_REDUCE_SCATTER_BASE, "c10d::reduce_scatter", {output, input},
               [host = host_, out = host_twin(output), in = host_twin(input), options]() mutable {
                 return host->_reduce_scatter_base(out, in, options);
               });
}

Started Collectives::alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits,
                                   std::vector<int64_t>& input_splits, const c10d::AllToAllOptions& options) {
  return start(OpType::ALLTOALL_BASE, "c10d::alltoall", {output, input},
               [host = host_, out = host_twin(output), in = host_twin(input), to = output_splits, from = input_splits,
                options]() mutable { return host->alltoall_base(out, in, to, from, options); });
}

Started Collectives::alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) {
  return start(OpType::ALLTOALL, "c10d::alltoall", together(outputs, {inputs}),
               [host = host_, out = twins(outputs), in = twins(inputs), options]() mutable {
                 return host->alltoall(out, in, options);
               });
}

Started Collectives::send(Tensors& tensors, int target, int tag) {
  return start(OpType::SEND, "c10d::send", tensors, [host = host_, data = twins(tensors), target, tag]() mutable {
    return host->send(data, target, tag);
  });
}

Started Collectives::recv(Tensors& tensors, int source, int tag) {
  return start(OpType::RECV, "c10d::recv", tensors, [host = host_, data = twins(tensors), source, tag]() mutable {
    return host->recv(data, source, tag);
  });
}

// Unlike the others this one blocks the host.
Started Collectives::barrier(const c10d::BarrierOptions&) {
  finish_device(current_device());
  while (active(Fault::CollectiveHangs)) pause();
  return host_->barrier(c10d::BarrierOptions());
}

}  // namespace asyncsim
