// SPDX-License-Identifier: Apache-2.0
#include "apiserver/registry/loopback_client.h"

#include <utility>

#include "apiserver/cache/watch_cache.h"
#include "apiserver/registry/patch_mutation.h"
#include "apiserver/registry/write_parts.h"
#include "base/log.h"
#include "base/strings.h"
#include "meta/at_rest.h"
#include "meta/json.h"

namespace berth::apiserver {

namespace {

Result<Selection> ParseSelection(std::string namespace_,
                                 std::string_view labels,
                                 std::string_view fields) {
  Selection selection{.namespace_ = std::move(namespace_), .labels = {}, .fields = {}};
  TRY(selection.labels, meta::Selector::Parse(labels));
  TRY(selection.fields, meta::FieldSelector::Parse(fields));
  return selection;
}

client::WatchEvent::Type TypeOf(RegistryEvent::Type type) {
  switch (type) {
    case RegistryEvent::Type::kAdded: return client::WatchEvent::Type::kAdded;
    case RegistryEvent::Type::kModified: return client::WatchEvent::Type::kModified;
    case RegistryEvent::Type::kDeleted: return client::WatchEvent::Type::kDeleted;
    case RegistryEvent::Type::kBookmark: return client::WatchEvent::Type::kBookmark;
  }
  return client::WatchEvent::Type::kBookmark;
}

// Whoever looks for it has its revision; its name may be part of what cannot be read.
Status Unreadable(const meta::KindInfo& kind, const StoredObject& stored, const Status& why) {
  return why.Wrap("one of the " + std::string(kind.plural) + ", written at revision " +
                  FormatResourceVersion(stored.revision) + ", cannot be read");
}

// `key` is NAMESPACE/NAME or NAME.
client::Unread UnreadOf(std::string_view key, const StoredObject& stored) {
  const size_t slash = key.find('/');
  client::Unread unread;
  if (slash != std::string_view::npos) unread.key.namespace_ = key.substr(0, slash);
  unread.key.name = key.substr(slash == std::string_view::npos ? 0 : slash + 1);
  const Result<meta::AtRestView> view = meta::AtRestView::Parse(stored.at_rest.view());
  if (view.ok()) unread.uid = view->uid();
  unread.at_rest = stored.at_rest;
  return unread;
}

class LoopbackWatch final : public client::ObjectWatch {
 public:
  LoopbackWatch(const meta::KindInfo& kind,
                client::Detail detail,
                std::unique_ptr<RegistryWatch> watch)
      : kind_(kind), detail_(detail), watch_(std::move(watch)) {}

  rt::Task<Result<std::vector<client::WatchEvent>>> Next() override {
    std::vector<client::WatchEvent> out;
    while (out.empty()) {
      CO_TRY(const std::vector<RegistryEvent> events, co_await watch_->Next());
      CO_TRY_STATUS(Translate(events, out));
    }
    co_return out;
  }

 private:
  Status Translate(const std::vector<RegistryEvent>& events,
                   std::vector<client::WatchEvent>& out) const {
    out.reserve(events.size());
    for (const RegistryEvent& event : events) {
      client::WatchEvent translated{
          .type = TypeOf(event.type),
          .object = {},
          .resource_version = FormatResourceVersion(event.object.revision)};
      if (event.type == RegistryEvent::Type::kBookmark) {
        translated.object = meta::Object(kind_);
      } else {
        auto decoded = Decoded(event);
        // Who is gone is found out by a new list.
        if (!decoded.ok() && event.type == RegistryEvent::Type::kDeleted) {
          return Expired("the last state of what was deleted cannot be read; list again");
        }
        if (!decoded.ok()) {
          // The reader goes on with the state that it has.
          LOG_ERROR("{}", Unreadable(kind_, event.object, decoded.status()).message());
          continue;
        }
        translated.object = *std::move(decoded);
      }
      out.push_back(std::move(translated));
    }
    return OkStatus();
  }
  // What several watches want whole is decoded by the first of them. Not the last state of what is
  // gone: for a watch whose selection it did not leave, the same event carries the new state.
  Result<meta::SharedObject> Decoded(const RegistryEvent& event) const {
    const bool is_shared = event.frames != nullptr && event.type != RegistryEvent::Type::kDeleted &&
                           kind_.view == nullptr;
    // Whoever asked for metadata alone does not mind the rest, if it is there already.
    if (is_shared && !event.frames->decoded().empty()) return event.frames->decoded();
    TRY(meta::Object object, DecodeFor(kind_, event.object, detail_));
    meta::SharedObject made(std::move(object));
    if (is_shared && detail_ == client::Detail::kFull) event.frames->KeepDecoded(made);
    return made;
  }

  const meta::KindInfo& kind_;
  const client::Detail detail_;
  std::unique_ptr<RegistryWatch> watch_;
};

Result<meta::Object> Written(const meta::KindInfo& kind, const Result<WriteResult>& result) {
  if (!result.ok()) return result.status();
  return DecodeFor(kind, result->object);
}

}  // namespace

Result<meta::Object> DecodeFor(const meta::KindInfo& kind,
                               const StoredObject& stored,
                               client::Detail detail) {
  if (detail == client::Detail::kFull) {
    TRY(meta::Object object, Decode(kind.view == nullptr ? kind : *kind.view->stored, stored));
    if (stored.revision.value == 0) object.metadata().resource_version.clear();
    return FromStored(kind, std::move(object));
  }
  TRY(const meta::AtRestView view, meta::AtRestView::Parse(stored.at_rest.view()));
  meta::Object object(kind);
  const std::string json = "{" + std::string(view.metadata_body());
  TRY_STATUS(meta::DecodeJson(json, meta::TypeInfoOf<meta::ObjectMeta>(), &object.metadata()));
  object.metadata().resource_version = FormatResourceVersion(stored.revision);
  return object;
}

LoopbackClient::LoopbackClient(Registry& registry, const meta::Scheme& scheme, Identity identity)
    : registry_(registry), scheme_(scheme), identity_(std::move(identity)) {}

WriteContext LoopbackClient::Context(const client::WriteOptions& options) const {
  WriteContext context;
  context.identity = identity_;
  context.dry_run = options.dry_run;
  context.subresource = options.subresource;
  return context;
}

rt::Task<Result<meta::Object>> LoopbackClient::Get(const meta::KindInfo& kind,
                                                   client::ObjectKey key) {
  CO_TRY(const StoredObject stored, co_await registry_.Get(kind, std::move(key), ""));
  co_return DecodeFor(kind, stored);
}

rt::Task<Result<client::ObjectList>> LoopbackClient::List(const meta::KindInfo& kind,
                                                          client::ListOptions options) {
  ListRequest request;
  CO_TRY(request.selection,
         ParseSelection(
             std::move(options.namespace_), options.label_selector, options.field_selector));
  request.limit = options.limit;
  request.wants_remaining = false;
  request.continue_token = std::move(options.continue_token);
  request.resource_version = std::move(options.resource_version);
  const bool is_named = options.unreadable == client::Unreadable::kName;
  request.wants_keys = is_named;
  CO_TRY(ListPage page, co_await registry_.List(kind, std::move(request)));
  client::ObjectList list{.items = {},
                          .resource_version = FormatResourceVersion(page.revision),
                          .continue_token = std::move(page.continue_token),
                          .unread = {}};
  const bool is_strict = options.unreadable == client::Unreadable::kFail;
  if (is_strict && !page.passed_over.empty()) {
    co_return Internal(std::string(kind.plural) + " " + Quote(page.passed_over.front().key) +
                       " cannot be read; a deletion by force removes it");
  }
  if (is_named) {
    for (PassedOver& one : page.passed_over) list.unread.push_back(UnreadOf(one.key, one.object));
  }
  list.items.reserve(page.items.size());
  for (size_t i = 0; i < page.items.size(); ++i) {
    const StoredObject& stored = page.items[i];
    auto object = DecodeFor(kind, stored, options.detail);
    if (object.ok()) {
      list.items.push_back(*std::move(object));
      continue;
    }
    Status why = Unreadable(kind, stored, object.status());
    if (is_strict) co_return why;
    LOG_ERROR("{}", why.message());
    if (is_named) list.unread.push_back(UnreadOf(page.keys[i], stored));
  }
  co_return list;
}

rt::Task<Result<std::unique_ptr<client::ObjectWatch>>> LoopbackClient::Watch(
    const meta::KindInfo& kind, client::WatchOptions options) {
  WatchStart start;
  CO_TRY(start.selection,
         ParseSelection(
             std::move(options.namespace_), options.label_selector, options.field_selector));
  start.resource_version = std::move(options.resource_version);
  start.bookmarks = true;
  CO_TRY(std::unique_ptr<RegistryWatch> watch, co_await registry_.Watch(kind, std::move(start)));
  co_return std::make_unique<LoopbackWatch>(kind, options.detail, std::move(watch));
}

rt::Task<Result<meta::Object>> LoopbackClient::Create(meta::Object object,
                                                      client::WriteOptions options) {
  const meta::KindInfo& kind = object.kind();
  const Result<WriteResult> result = co_await registry_.Create(std::move(object), Context(options));
  co_return Written(kind, result);
}

rt::Task<std::vector<Result<meta::Object>>> LoopbackClient::CreateBatch(
    std::vector<meta::Object> objects, client::WriteOptions options) {
  std::vector<const meta::KindInfo*> kinds;
  for (const meta::Object& object : objects) kinds.push_back(&object.kind());
  const std::vector<Result<WriteResult>> results =
      co_await registry_.CreateBatch(std::move(objects), Context(options));
  std::vector<Result<meta::Object>> out;
  for (size_t i = 0; i < results.size(); ++i) out.push_back(Written(*kinds[i], results[i]));
  co_return out;
}

rt::Task<Result<meta::Object>> LoopbackClient::Update(meta::Object object,
                                                      client::WriteOptions options) {
  const meta::KindInfo& kind = object.kind();
  if (object.metadata().resource_version.empty()) {
    co_return BadRequest("update " + std::string(kind.plural) + " " + object.metadata().name +
                         ": metadata.resourceVersion must say which state is replaced");
  }
  const Result<WriteResult> result = co_await registry_.Update(std::move(object), Context(options));
  co_return Written(kind, result);
}

rt::Task<Result<meta::Object>> LoopbackClient::Patch(const meta::KindInfo& kind,
                                                     client::ObjectKey key,
                                                     client::PatchType type,
                                                     std::string body,
                                                     client::WriteOptions options) {
  CO_TRY(Mutation mutation, MakePatch(scheme_, kind, type, body));
  const Result<WriteResult> result =
      co_await registry_.Mutate(kind, std::move(key), std::move(mutation), Context(options));
  co_return Written(kind, result);
}

rt::Task<Status> LoopbackClient::Delete(const meta::KindInfo& kind,
                                        client::ObjectKey key,
                                        client::DeleteOptions options) {
  DeleteRequest request;
  request.propagation = options.propagation;
  request.force = options.force;
  request.uid = std::move(options.uid);
  request.resource_version = std::move(options.resource_version);
  const client::WriteOptions write{.dry_run = options.dry_run,
                                   .subresource = client::Subresource::kNone};
  const Result<DeleteResult> result =
      co_await registry_.Delete(kind, std::move(key), std::move(request), Context(write));
  co_return result.status();
}

rt::Task<std::vector<Result<std::vector<meta::Object>>>> LoopbackClient::BindBatch(
    std::vector<client::BindRequest> requests) {
  return registry_.binder().BindBatch(std::move(requests));
}

rt::Task<std::vector<Status>> LoopbackClient::CreateBoundBatch(meta::Object model,
                                                               std::vector<client::BindItem> items,
                                                               std::string holder,
                                                               int64_t term) {
  return registry_.binder().CreateBoundBatch(
      std::move(model), std::move(items), std::move(holder), term);
}

rt::Task<std::vector<Status>> LoopbackClient::UnbindBatch(
    std::vector<client::UnbindRequest> requests) {
  return registry_.binder().UnbindBatch(std::move(requests));
}

rt::Task<Result<std::vector<client::Tombstone>>> LoopbackClient::ListTombstones(
    std::string pool_uid) {
  return registry_.tombstones().ListTombstones(std::move(pool_uid));
}

rt::Task<Status> LoopbackClient::ClearTombstones(std::string pool_uid,
                                                 std::vector<std::string> uids) {
  return registry_.tombstones().ClearTombstones(std::move(pool_uid), std::move(uids));
}

rt::Task<std::vector<Status>> LoopbackClient::AdoptBatch(std::vector<client::Adoption> adoptions) {
  return registry_.rewound().AdoptBatch(std::move(adoptions));
}

rt::Task<Status> LoopbackClient::Settle() { return registry_.rewound().Settle(); }

}  // namespace berth::apiserver
