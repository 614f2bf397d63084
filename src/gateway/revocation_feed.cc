// SPDX-License-Identifier: Apache-2.0
#include "gateway/revocation_feed.h"

#include "apis/k8s/config_map.h"

namespace berth::gateway {
namespace {

client::Revocations RevocationsIn(const meta::Object& object) {
  return client::Revocations(object.as<apis::k8s::ConfigMap>().data);
}

}  // namespace

RevocationFeed::RevocationFeed(rt::Loop& loop,
                               client::Client& client,
                               std::function<void()> on_change)
    : on_change_(std::move(on_change)),
      reflector_(loop,
                 client,
                 apis::k8s::kConfigMapKind,
                 *this,
                 client::ReflectorOptions{
                     .namespace_ = std::string(client::kRecordNamespace),
                     .label_selector = "",
                     .field_selector = "metadata.name=" + std::string(client::kRevocationRecord),
                     .detail = client::Detail::kFull,
                     // Whom it locks out is not known: nobody is let in.
                     .unreadable = client::Unreadable::kFail}) {}

void RevocationFeed::OnListed(meta::Object object) { listed_ = RevocationsIn(object); }

void RevocationFeed::OnListEnd() { Set(std::move(listed_)); }

void RevocationFeed::OnEvent(client::WatchEvent event) {
  using Type = client::WatchEvent::Type;
  if (event.type == Type::kBookmark) return;
  Set(event.type == Type::kDeleted ? client::Revocations() : RevocationsIn(event.object));
}

void RevocationFeed::Set(client::Revocations revocations) {
  revocations_ = std::move(revocations);
  on_change_();
}

}  // namespace berth::gateway
