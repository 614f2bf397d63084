// SPDX-License-Identifier: Apache-2.0
// The driver of snapshots, which the runtime of their volumes keeps.
#include <utility>

#include "base/hash.h"
#include "iri/annotations.h"
#include "poollet/reconcile/driver.h"

namespace berth::poollet {
namespace {

using fleet::ObjectKind;

class SnapshotDriver final : public Driver {
 public:
  explicit SnapshotDriver(iri::VolumeRuntime& runtime) : runtime_(runtime) {}

  ObjectKind kind() const override { return ObjectKind::kVolumeSnapshot; }
  rt::Task<Result<iri::RuntimeVersion>> Version() override { return runtime_.Version(); }
  rt::Task<Result<std::vector<iri::Event>>> Events(iri::EventFilter filter) override {
    return runtime_.ListEvents(std::move(filter));
  }
  // It is of the class of its volume.
  rt::Task<Result<std::vector<OfferedClass>>> Classes() override {
    co_return std::vector<OfferedClass>();
  }

  rt::Task<Result<Observation>> Observe(std::string uid, std::string cluster_id) override {
    auto filter = internal::OfUid(kind(), std::move(uid), std::move(cluster_id));
    CO_TRY(auto snapshots, co_await runtime_.ListVolumeSnapshots(std::move(filter)));
    co_return Observation{std::move(snapshots)};
  }

  rt::Task<Result<std::vector<Seen>>> Scan(std::string cluster_id) override {
    auto filter = internal::OfCluster(std::move(cluster_id));
    auto snapshots = co_await runtime_.ListVolumeSnapshots(std::move(filter));
    // A runtime without snapshots has none.
    if (snapshots.status().Is(Reason::kMethodNotSupported)) co_return std::vector<Seen>();
    if (!snapshots.ok()) co_return snapshots.status();
    std::vector<Seen> all;
    for (const auto& snapshot : *snapshots) {
      Seen seen = internal::SeenOf(kind(), snapshot.metadata);
      seen.state = iri::SnapshotStateName(snapshot.state);
      seen.amounts = {{std::string(kStorage), snapshot.size_bytes}};
      seen.fingerprint = Fingerprint()
                             .Add(snapshot.metadata.id)
                             .Add(static_cast<int64_t>(snapshot.state))
                             .Add(snapshot.size_bytes)
                             .Add(snapshot.metadata.deleted_at.micros())
                             .Add(AnnotationOf(snapshot.metadata, iri::kProblemAnnotation))
                             .value();
      all.push_back(std::move(seen));
    }
    co_return all;
  }

  rt::Task<Result<std::string>> Create(std::shared_ptr<const Desired> desired,
                                       Situation situation) override {
    (void)situation;
    iri::VolumeSnapshot snapshot = std::get<DesiredSnapshot>(desired->body).object;
    CO_TRY(const iri::VolumeSnapshot created,
           co_await runtime_.CreateVolumeSnapshot(std::move(snapshot)));
    co_return created.metadata.id;
  }

  rt::Task<Status> Delete(std::string id) override {
    return runtime_.DeleteVolumeSnapshot(std::move(id));
  }

  rt::Task<Status> Perform(Step step,
                           std::shared_ptr<const Desired> desired,
                           std::shared_ptr<const Observation> observed) override {
    (void)step;
    (void)desired;
    (void)observed;
    co_return Internal("a step that snapshots do not have");
  }

  Step Next(const Desired& desired,
            const Observation& observed,
            const Situation& situation) const override {
    return NextSnapshotStep(
        desired, std::get<std::vector<iri::VolumeSnapshot>>(observed.objects), situation);
  }
  ObjectReport Report(const Desired& desired,
                      const Observation& observed,
                      const Progress& progress) const override {
    return ReportSnapshot(
        desired, std::get<std::vector<iri::VolumeSnapshot>>(observed.objects), progress);
  }

 private:
  iri::VolumeRuntime& runtime_;
};

}  // namespace

std::unique_ptr<Driver> NewSnapshotDriver(iri::VolumeRuntime& runtime) {
  return std::make_unique<SnapshotDriver>(runtime);
}

}  // namespace berth::poollet
