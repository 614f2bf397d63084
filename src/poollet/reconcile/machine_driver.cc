// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "poollet/reconcile/driver.h"

namespace berth::poollet {
namespace {

using fleet::ObjectKind;

template <class Part>
const Part& Named(const std::vector<Part>& parts, std::string_view name) {
  const auto found = std::ranges::find_if(parts, [&](const Part& p) { return p.name == name; });
  CHECK(found != parts.end()) << "a step names part " << name << ", which nobody wants";
  return *found;
}

// Gone already, or there already: as good as done, and the next look decides.
Status Settle(Status status, Reason harmless) {
  return status.Is(harmless) ? OkStatus() : std::move(status);
}

uint64_t FingerprintOf(const iri::Machine& machine) {
  Fingerprint print;
  print.Add(machine.metadata.id)
      .Add(machine.metadata.generation)
      .Add(machine.metadata.deleted_at.micros())
      .Add(machine.status.observed_generation)
      .Add(static_cast<int64_t>(machine.status.state))
      .Add(static_cast<int64_t>(machine.spec.power));
  for (const auto* parts : {&machine.status.volumes, &machine.status.nics}) {
    for (const auto& part : *parts) {
      print.Add(part.name).Add(part.handle).Add(static_cast<int64_t>(part.state));
    }
  }
  for (const auto& volume : machine.spec.volumes) {
    print.Add(volume.name);
    if (volume.connection.has_value()) print.Add(volume.connection->effective_storage_bytes);
  }
  for (const auto& condition : machine.status.conditions) {
    print.Add(condition.type).Add(condition.status).Add(condition.reason).Add(condition.message);
  }
  return print.value();
}

class MachineDriver final : public Driver {
 public:
  MachineDriver(iri::MachineRuntime& runtime, iri::HostRuntime* host)
      : runtime_(runtime), host_(host) {}

  ObjectKind kind() const override { return ObjectKind::kMachine; }
  rt::Task<Result<iri::RuntimeVersion>> Version() override { return runtime_.Version(); }
  rt::Task<Result<std::vector<iri::Event>>> Events(iri::EventFilter filter) override {
    return runtime_.ListEvents(std::move(filter));
  }

  rt::Task<Result<std::vector<OfferedClass>>> Classes() override {
    CO_TRY(auto classes, co_await runtime_.ClassStatus());
    std::vector<OfferedClass> offered;
    for (const auto& status : classes) {
      needs_[status.machine_class.name] = ToResourceVector(status.machine_class);
      offered.push_back({.name = status.machine_class.name,
                         .capabilities = status.machine_class.capabilities,
                         .quantity = status.quantity});
    }
    co_return offered;
  }

  rt::Task<Result<Observation>> Observe(std::string uid, std::string cluster_id) override {
    auto filter = internal::OfUid(kind(), std::move(uid), std::move(cluster_id));
    CO_TRY(auto machines, co_await runtime_.ListMachines(std::move(filter)));
    co_return Observation{std::move(machines)};
  }

  rt::Task<Result<std::vector<Seen>>> Scan(std::string cluster_id) override {
    auto filter = internal::OfCluster(std::move(cluster_id));
    CO_TRY(const auto machines, co_await runtime_.ListMachines(std::move(filter)));
    std::vector<Seen> all;
    for (const auto& machine : machines) {
      Seen seen = internal::SeenOf(kind(), machine.metadata);
      seen.state = MachineStateWord(machine.status.state);
      seen.class_name = machine.spec.class_name;
      seen.amounts = NeedsOf(machine);
      seen.fingerprint = FingerprintOf(machine);
      all.push_back(std::move(seen));
    }
    co_return all;
  }

  // Every runtime has this call, and it says again what is so.
  rt::Task<Status> Ask(RuntimeObject object, std::shared_ptr<const Desired> desired) override {
    iri::Machine there;
    there.metadata.annotations = std::move(object.annotations);
    iri::StringMap annotations = AnnotationsFor(std::get<DesiredMachine>(desired->body), there);
    co_return co_await runtime_.UpdateMachineAnnotations(object.id, std::move(annotations));
  }

  rt::Task<Result<std::string>> Create(std::shared_ptr<const Desired> desired,
                                       Situation situation) override {
    iri::Machine made = MachineToCreate(std::get<DesiredMachine>(desired->body), situation);
    CO_TRY(const iri::Machine created, co_await runtime_.CreateMachine(std::move(made)));
    co_return created.metadata.id;
  }

  rt::Task<Status> Delete(std::string id) override { return runtime_.DeleteMachine(std::move(id)); }

  rt::Task<Status> Perform(Step step,
                           std::shared_ptr<const Desired> desired,
                           std::shared_ptr<const Observation> observed) override {
    using Kind = Step::Kind;
    const auto& machine = std::get<DesiredMachine>(desired->body);
    switch (step.kind) {
      case Kind::kPowerOn: co_return co_await runtime_.UpdateMachinePower(step.id, iri::Power::kOn);
      case Kind::kPowerOff:
        co_return co_await runtime_.UpdateMachinePower(step.id, iri::Power::kOff);
      case Kind::kAttachVolume: {
        iri::MachineVolume volume = Named(machine.object.spec.volumes, step.part);
        Status attached = co_await runtime_.AttachVolume(step.id, std::move(volume));
        co_return Settle(std::move(attached), Reason::kAlreadyExists);
      }
      case Kind::kDetachVolume: {
        Status detached = co_await runtime_.DetachVolume(step.id, step.part);
        co_return Settle(std::move(detached), Reason::kNotFound);
      }
      case Kind::kUpdateVolume: {
        iri::MachineVolume volume = Named(machine.object.spec.volumes, step.part);
        co_return co_await runtime_.UpdateVolume(step.id, std::move(volume));
      }
      case Kind::kAttachNic: {
        iri::MachineNic nic = Named(machine.object.spec.nics, step.part);
        Status attached = co_await runtime_.AttachNetworkInterface(step.id, std::move(nic));
        co_return Settle(std::move(attached), Reason::kAlreadyExists);
      }
      case Kind::kDetachNic: {
        Status detached = co_await runtime_.DetachNetworkInterface(step.id, step.part);
        co_return Settle(std::move(detached), Reason::kNotFound);
      }
      case Kind::kAnnotate: {
        const auto& there = std::get<std::vector<iri::Machine>>(observed->objects).front();
        iri::StringMap annotations = AnnotationsFor(machine, there);
        co_return co_await runtime_.UpdateMachineAnnotations(step.id, std::move(annotations));
      }
      case Kind::kGiveIgnition: {
        CHECK(host_ != nullptr) << "it is not asked of a foreign runtime";
        iri::Ignition ignition{.machine_uid = desired->uid,
                               .data = machine.object.spec.ignition_data};
        co_return co_await host_->SetIgnition(std::move(ignition));
      }
      default: co_return Internal("a step that machines do not have");
    }
  }

  std::string PullSecretFor(const Desired& desired, const Observation& observed) const override {
    const auto& there = std::get<std::vector<iri::Machine>>(observed.objects);
    // Images are fetched when it starts; disks that come later may be of images, too.
    const auto lacks = [](const iri::AttachmentStatus& volume) {
      return volume.state == iri::AttachmentState::kPending;
    };
    const bool is_whole = !there.empty() &&
                          there.front().status.state == iri::MachineState::kRunning &&
                          std::ranges::none_of(there.front().status.volumes, lacks) &&
                          there.front().spec.volumes.size() ==
                              std::get<DesiredMachine>(desired.body).object.spec.volumes.size();
    return is_whole ? std::string() : std::get<DesiredMachine>(desired.body).pull_secret;
  }

  Step Next(const Desired& desired,
            const Observation& observed,
            const Situation& situation) const override {
    return NextMachineStep(
        desired, std::get<std::vector<iri::Machine>>(observed.objects), situation);
  }
  ObjectReport Report(const Desired& desired,
                      const Observation& observed,
                      const Progress& progress) const override {
    return ReportMachine(desired, std::get<std::vector<iri::Machine>>(observed.objects), progress);
  }

 private:
  Amounts NeedsOf(const iri::Machine& machine) const {
    Amounts needs;
    const auto known = needs_.find(machine.spec.class_name);
    if (known != needs_.end()) needs = known->second;
    for (const auto& volume : machine.spec.volumes) {
      if (volume.local_disk.has_value()) {
        needs[std::string(kStorage)] += volume.local_disk->size_bytes;
      }
    }
    return needs;
  }

  iri::MachineRuntime& runtime_;
  iri::HostRuntime* const host_;
  std::map<std::string, Amounts, std::less<>> needs_;  // by class, as of the last Classes()
};

}  // namespace

std::unique_ptr<Driver> NewMachineDriver(iri::MachineRuntime& runtime, iri::HostRuntime* host) {
  return std::make_unique<MachineDriver>(runtime, host);
}

}  // namespace berth::poollet
