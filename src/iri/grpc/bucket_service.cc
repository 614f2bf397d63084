// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "bucket/v1alpha1/api.grpc.pb.h"
#include "iri/grpc/serving.h"

namespace berth::iri {

namespace {

class BucketService final : public bucket_pb::BucketRuntime::CallbackService {
 public:
  BucketService(rt::TaskScope& scope, BucketRuntime& runtime) : scope_(scope), runtime_(runtime) {}

  grpc::ServerUnaryReactor* Version(grpc::CallbackServerContext*,
                                    const bucket_pb::VersionRequest* request,
                                    bucket_pb::VersionResponse* response) override {
    return Serve(scope_, request, response, [this](const bucket_pb::VersionRequest&) {
      return VersionAnswer<bucket_pb::VersionResponse>(runtime_.Version());
    });
  }
  grpc::ServerUnaryReactor* ListEvents(grpc::CallbackServerContext*,
                                       const bucket_pb::ListEventsRequest* request,
                                       bucket_pb::ListEventsResponse* response) override {
    return Serve(scope_, request, response, [this](const bucket_pb::ListEventsRequest& r) {
      return EventsAnswer<bucket_pb::ListEventsResponse>(
          runtime_.ListEvents(EventFilterFromProto(r.filter())));
    });
  }
  grpc::ServerUnaryReactor* ListBuckets(grpc::CallbackServerContext*,
                                        const bucket_pb::ListBucketsRequest* request,
                                        bucket_pb::ListBucketsResponse* response) override {
    return Serve(scope_, request, response, [this](const bucket_pb::ListBucketsRequest& r) {
      return Filled<bucket_pb::ListBucketsResponse, std::vector<Bucket>>(
          runtime_.ListBuckets(FilterFromProto(r.filter())),
          [](const std::vector<Bucket>& all, bucket_pb::ListBucketsResponse& answer) {
            for (const Bucket& one : all) *answer.add_buckets() = ToProto(one);
          });
    });
  }
  grpc::ServerUnaryReactor* CreateBucket(grpc::CallbackServerContext*,
                                         const bucket_pb::CreateBucketRequest* request,
                                         bucket_pb::CreateBucketResponse* response) override {
    return Serve(scope_, request, response, [this](const bucket_pb::CreateBucketRequest& r) {
      return Filled<bucket_pb::CreateBucketResponse, Bucket>(
          runtime_.CreateBucket(FromProto(r.bucket())),
          [](const Bucket& made, bucket_pb::CreateBucketResponse& answer) {
            *answer.mutable_bucket() = ToProto(made);
          });
    });
  }
  grpc::ServerUnaryReactor* DeleteBucket(grpc::CallbackServerContext*,
                                         const bucket_pb::DeleteBucketRequest* request,
                                         bucket_pb::DeleteBucketResponse* response) override {
    return Serve(scope_, request, response, [this](const bucket_pb::DeleteBucketRequest& r) {
      return Done<bucket_pb::DeleteBucketResponse>(runtime_.DeleteBucket(r.bucket_id()));
    });
  }
  grpc::ServerUnaryReactor* ListBucketClasses(
      grpc::CallbackServerContext*,
      const bucket_pb::ListBucketClassesRequest* request,
      bucket_pb::ListBucketClassesResponse* response) override {
    return Serve(scope_, request, response, [this](const bucket_pb::ListBucketClassesRequest&) {
      return Filled<bucket_pb::ListBucketClassesResponse, std::vector<BucketClass>>(
          runtime_.ListBucketClasses(),
          [](const std::vector<BucketClass>& all, bucket_pb::ListBucketClassesResponse& answer) {
            for (const BucketClass& one : all) *answer.add_bucket_classes() = ToProto(one);
          });
    });
  }

 private:
  rt::TaskScope& scope_;
  BucketRuntime& runtime_;
};

}  // namespace

std::unique_ptr<grpc::Service> NewBucketService(rt::TaskScope& scope, BucketRuntime& runtime) {
  return std::make_unique<BucketService>(scope, runtime);
}

}  // namespace berth::iri
