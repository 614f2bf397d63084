// SPDX-License-Identifier: Apache-2.0
// Drivers of volumes and buckets.
#include <utility>

#include "base/hash.h"
#include "iri/annotations.h"
#include "poollet/reconcile/driver.h"

namespace berth::poollet {
namespace {

using fleet::ObjectKind;

class VolumeDriver final : public Driver {
 public:
  explicit VolumeDriver(iri::VolumeRuntime& runtime) : runtime_(runtime) {}

  ObjectKind kind() const override { return ObjectKind::kVolume; }
  rt::Task<Result<iri::RuntimeVersion>> Version() override { return runtime_.Version(); }
  rt::Task<Result<std::vector<iri::Event>>> Events(iri::EventFilter filter) override {
    return runtime_.ListEvents(std::move(filter));
  }

  rt::Task<Result<std::vector<OfferedClass>>> Classes() override {
    CO_TRY(auto classes, co_await runtime_.ClassStatus());
    std::vector<OfferedClass> offered;
    for (const auto& status : classes) {
      offered.push_back(
          {.name = status.volume_class.name,
           .capabilities = {{"tps", status.volume_class.tps}, {"iops", status.volume_class.iops}},
           .quantity = status.quantity});
    }
    co_return offered;
  }

  rt::Task<Result<Observation>> Observe(std::string uid, std::string cluster_id) override {
    auto filter = internal::OfUid(kind(), std::move(uid), std::move(cluster_id));
    CO_TRY(auto volumes, co_await runtime_.ListVolumes(std::move(filter)));
    co_return Observation{std::move(volumes)};
  }

  rt::Task<Result<std::vector<Seen>>> Scan(std::string cluster_id) override {
    auto filter = internal::OfCluster(std::move(cluster_id));
    CO_TRY(const auto volumes, co_await runtime_.ListVolumes(std::move(filter)));
    std::vector<Seen> all;
    for (const auto& volume : volumes) {
      Seen seen = internal::SeenOf(kind(), volume.metadata);
      seen.state = iri::VolumeStateName(volume.status.state);
      seen.class_name = volume.spec.class_name;
      seen.amounts = {{std::string(kStorage), volume.spec.storage_bytes}};
      seen.fingerprint = Fingerprint()
                             .Add(volume.metadata.id)
                             .Add(static_cast<int64_t>(volume.status.state))
                             .Add(volume.status.storage_bytes)
                             .Add(volume.spec.storage_bytes)
                             .Add(volume.status.access.handle)
                             .Add(volume.metadata.deleted_at.micros())
                             .Add(AnnotationOf(volume.metadata, iri::kProblemAnnotation))
                             .value();
      all.push_back(std::move(seen));
    }
    co_return all;
  }

  rt::Task<Result<std::string>> Create(std::shared_ptr<const Desired> desired,
                                       Situation situation) override {
    (void)situation;
    iri::Volume volume = std::get<DesiredVolume>(desired->body).object;
    CO_TRY(const iri::Volume created, co_await runtime_.CreateVolume(std::move(volume)));
    co_return created.metadata.id;
  }

  rt::Task<Status> Delete(std::string id) override { return runtime_.DeleteVolume(std::move(id)); }

  rt::Task<Status> Perform(Step step,
                           std::shared_ptr<const Desired> desired,
                           std::shared_ptr<const Observation> observed) override {
    (void)observed;
    const iri::Volume& wanted = std::get<DesiredVolume>(desired->body).object;
    if (step.kind == Step::Kind::kExpand) {
      co_return co_await runtime_.ExpandVolume(step.id, wanted.spec.storage_bytes);
    }
    co_return Internal("a step that volumes do not have");
  }

  std::string PullSecretFor(const Desired& desired, const Observation& observed) const override {
    const auto& there = std::get<std::vector<iri::Volume>>(observed.objects);
    const bool is_made =
        !there.empty() && there.front().status.state == iri::VolumeState::kAvailable;
    return is_made ? std::string() : std::get<DesiredVolume>(desired.body).pull_secret;
  }

  Step Next(const Desired& desired,
            const Observation& observed,
            const Situation& situation) const override {
    return NextVolumeStep(desired, std::get<std::vector<iri::Volume>>(observed.objects), situation);
  }
  ObjectReport Report(const Desired& desired,
                      const Observation& observed,
                      const Progress& progress) const override {
    return ReportVolume(desired, std::get<std::vector<iri::Volume>>(observed.objects), progress);
  }

 private:
  iri::VolumeRuntime& runtime_;
};

class BucketDriver final : public Driver {
 public:
  explicit BucketDriver(iri::BucketRuntime& runtime) : runtime_(runtime) {}

  ObjectKind kind() const override { return ObjectKind::kBucket; }
  rt::Task<Result<iri::RuntimeVersion>> Version() override { return runtime_.Version(); }
  rt::Task<Result<std::vector<iri::Event>>> Events(iri::EventFilter filter) override {
    return runtime_.ListEvents(std::move(filter));
  }

  rt::Task<Result<std::vector<OfferedClass>>> Classes() override {
    CO_TRY(auto classes, co_await runtime_.ListBucketClasses());
    std::vector<OfferedClass> offered;
    for (const auto& bucket_class : classes) {
      offered.push_back({.name = bucket_class.name,
                         .capabilities = {{"tps", bucket_class.tps}, {"iops", bucket_class.iops}},
                         .quantity = 0});
    }
    co_return offered;
  }

  rt::Task<Result<Observation>> Observe(std::string uid, std::string cluster_id) override {
    auto filter = internal::OfUid(kind(), std::move(uid), std::move(cluster_id));
    CO_TRY(auto buckets, co_await runtime_.ListBuckets(std::move(filter)));
    co_return Observation{std::move(buckets)};
  }

  rt::Task<Result<std::vector<Seen>>> Scan(std::string cluster_id) override {
    auto filter = internal::OfCluster(std::move(cluster_id));
    CO_TRY(const auto buckets, co_await runtime_.ListBuckets(std::move(filter)));
    std::vector<Seen> all;
    for (const auto& bucket : buckets) {
      Seen seen = internal::SeenOf(kind(), bucket.metadata);
      seen.state = iri::BucketStateName(bucket.state);
      seen.class_name = bucket.class_name;
      seen.fingerprint = Fingerprint()
                             .Add(bucket.metadata.id)
                             .Add(static_cast<int64_t>(bucket.state))
                             .Add(bucket.access.endpoint)
                             .Add(bucket.metadata.deleted_at.micros())
                             .value();
      all.push_back(std::move(seen));
    }
    co_return all;
  }

  rt::Task<Result<std::string>> Create(std::shared_ptr<const Desired> desired,
                                       Situation situation) override {
    (void)situation;
    iri::Bucket bucket = std::get<DesiredBucket>(desired->body).object;
    CO_TRY(const iri::Bucket created, co_await runtime_.CreateBucket(std::move(bucket)));
    co_return created.metadata.id;
  }

  rt::Task<Status> Delete(std::string id) override { return runtime_.DeleteBucket(std::move(id)); }

  rt::Task<Status> Perform(Step step,
                           std::shared_ptr<const Desired> desired,
                           std::shared_ptr<const Observation> observed) override {
    (void)step;
    (void)desired;
    (void)observed;
    co_return Internal("a step that buckets do not have");
  }

  Step Next(const Desired& desired,
            const Observation& observed,
            const Situation& situation) const override {
    return NextBucketStep(desired, std::get<std::vector<iri::Bucket>>(observed.objects), situation);
  }
  ObjectReport Report(const Desired& desired,
                      const Observation& observed,
                      const Progress& progress) const override {
    return ReportBucket(desired, std::get<std::vector<iri::Bucket>>(observed.objects), progress);
  }

 private:
  iri::BucketRuntime& runtime_;
};

}  // namespace

std::unique_ptr<Driver> NewVolumeDriver(iri::VolumeRuntime& runtime) {
  return std::make_unique<VolumeDriver>(runtime);
}
std::unique_ptr<Driver> NewBucketDriver(iri::BucketRuntime& runtime) {
  return std::make_unique<BucketDriver>(runtime);
}

}  // namespace berth::poollet
