// SPDX-License-Identifier: Apache-2.0
#include "poollet/poollet.h"

#include <utility>

namespace berth::poollet {

Poollet::~Poollet() = default;

rt::Task<Result<std::unique_ptr<Poollet>>> Poollet::Start(Deps deps, Options options) {
  std::unique_ptr<Poollet> poollet(new Poollet());
  if (deps.fencer == nullptr && deps.runtimes.machine_host != nullptr) {
    poollet->own_fencer_ = std::make_unique<RuntimeFencer>(*deps.runtimes.machine_host);
    deps.fencer = poollet->own_fencer_.get();
  }
  Host::Deps host_deps;
  host_deps.loop = deps.loop;
  host_deps.disk = deps.disk;
  host_deps.fencer = deps.fencer;
  host_deps.runtimes = deps.runtimes;
  host_deps.slept = std::move(deps.slept);
  host_deps.wake = [raw = poollet.get()](Urgency urgency) {
    if (raw->session_ != nullptr) raw->session_->Wake(urgency);
  };
  CO_TRY(poollet->host_, co_await Host::Open(std::move(host_deps), std::move(options.host)));
  poollet->session_ = std::make_unique<Session>(
      *deps.loop, *deps.dialer, *deps.credentials, *poollet->host_, options.session);
  poollet->session_->Start();
  co_return poollet;
}

rt::Task<Status> Poollet::Stop(LeaveMode mode) {
  CO_TRY_STATUS(co_await session_->Leave(mode, &host_->drained()));
  co_return co_await host_->Close();
}

rt::Task<Status> Poollet::Abandon() {
  CO_TRY_STATUS(co_await host_->Abandon());
  co_return co_await session_->Close();
}

}  // namespace berth::poollet
