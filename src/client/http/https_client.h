// SPDX-License-Identifier: Apache-2.0
// HttpsClient is the Client of components in another process than the API server: JSON over HTTPS.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "client/binder.h"
#include "client/client.h"
#include "meta/scheme.h"
#include "net/http_client.h"

namespace berth::client {

struct HttpsClientOptions {
  std::string token;  // "": the connection's certificate says who we are
  std::string user_agent = "berth";
  Duration deadline = Duration::Seconds(30);  // of one request; watches have none
};

class HttpsClient final : public Client, public Binder {
 public:
  // Both outlive the client. Runs on the loop of `http`.
  HttpsClient(net::HttpClient& http, const meta::Scheme& scheme, HttpsClientOptions options);

  rt::Task<Result<meta::Object>> Get(const meta::KindInfo& kind, ObjectKey key) override;
  rt::Task<Result<ObjectList>> List(const meta::KindInfo& kind, ListOptions options) override;
  rt::Task<Result<std::unique_ptr<ObjectWatch>>> Watch(const meta::KindInfo& kind,
                                                       WatchOptions options) override;
  rt::Task<Result<meta::Object>> Create(meta::Object object, WriteOptions options) override;
  // One request per object, a bounded number at once: they meet again in the server's commits.
  rt::Task<std::vector<Result<meta::Object>>> CreateBatch(std::vector<meta::Object> objects,
                                                          WriteOptions options) override;
  rt::Task<Result<meta::Object>> Update(meta::Object object, WriteOptions options) override;
  rt::Task<Result<meta::Object>> Patch(const meta::KindInfo& kind,
                                       ObjectKey key,
                                       PatchType type,
                                       std::string body,
                                       WriteOptions options) override;
  rt::Task<Status> Delete(const meta::KindInfo& kind,
                          ObjectKey key,
                          DeleteOptions options) override;

  // One request per binding, a bounded number at once. All items of one are of one namespace.
  rt::Task<std::vector<Result<std::vector<meta::Object>>>> BindBatch(
      std::vector<BindRequest> requests) override;
  // Created and then bound; what could not be bound is deleted again.
  rt::Task<std::vector<Status>> CreateBoundBatch(meta::Object model,
                                                 std::vector<BindItem> items,
                                                 std::string holder,
                                                 int64_t term) override;
  rt::Task<std::vector<Status>> UnbindBatch(std::vector<UnbindRequest> requests) override;

 private:
  rt::Task<Result<std::vector<meta::Object>>> Bind(BindRequest request);
  rt::Task<Status> Unbind(UnbindRequest request);
  rt::Task<Status> CreateBound(meta::Object object,
                               BindItem item,
                               std::string holder,
                               int64_t term);
  struct Question;
  std::string Path(const meta::KindInfo& kind,
                   std::string_view namespace_,
                   std::string_view name,
                   Subresource subresource) const;
  net::HttpClientRequest Request(Question question) const;
  rt::Task<Result<std::string>> Ask(Question question);
  rt::Task<Result<meta::Object>> AskForObject(const meta::KindInfo* kind, Question question);

  net::HttpClient& http_;
  const meta::Scheme& scheme_;
  const HttpsClientOptions options_;
};

}  // namespace berth::client
