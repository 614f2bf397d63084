// SPDX-License-Identifier: Apache-2.0
// ProcessFencer speaks to a fencer process (fencer_process.h) and starts a new one as soon as there
// is none. For runtimes whose guests are processes of this host.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "iri/host.h"
#include "net/stream.h"
#include "poollet/fencer/fence_table.h"
#include "poollet/fencer/fencer.h"
#include "rt/asio/asio_loop.h"
#include "rt/event.h"
#include "rt/gate.h"
#include "rt/scope.h"

namespace berth::poollet {

// Whether the guests of the runtime are for a ProcessFencer. The runtime need not know them yet. An
// error: it does not say.
rt::Task<Result<bool>> NeedsProcessFencer(iri::HostRuntime* runtime);

class ProcessFencer final : public Fencer {
 public:
  // `launch` starts a fencer for the folder and does not wait for it. The runtime outlives us.
  ProcessFencer(rt::AsioLoop& loop,
                iri::HostRuntime& runtime,
                std::string folder,
                std::function<Status()> launch);
  ~ProcessFencer() override;

  void Start();
  // The fencer lives on.
  rt::Task<Status> Close();

  // Also puts the runtime's guests under the fencer, and lets those run that it has.
  rt::Task<Result<std::vector<iri::LeaseState>>> Renew(iri::LeaseRenewal renewal) override;
  void GuestsChanged() override;

 private:
  rt::Task<Status> Supervise();
  rt::Task<Status> Connect();
  rt::Task<Status> Look();
  rt::Task<Status> WaitForFencer();
  rt::Task<Result<FenceTable::Leases>> Exchange(FenceRequest request);
  rt::Task<Result<std::string>> ReadAnswer();
  rt::Task<Status> LetRun(std::vector<iri::GuestProcess> guests, FenceTable::Leases leases);
  void Lost();

  rt::AsioLoop& loop_;
  iri::HostRuntime& runtime_;
  const std::string folder_;
  const std::function<Status()> launch_;
  std::unique_ptr<net::PlainStream> stream_;
  rt::Gate exchange_{1};
  rt::Event connected_;
  rt::Event lost_;
  bool looking_ = false;
  bool again_ = false;
  rt::TaskScope scope_;
};

}  // namespace berth::poollet
