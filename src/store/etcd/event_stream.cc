// SPDX-License-Identifier: Apache-2.0
#include "store/etcd/event_stream.h"

#include <optional>
#include <string>
#include <utility>

#include "rt/deadline.h"
#include "store/etcd/etcd_errors.h"
#include "store/etcd/wire.h"

namespace berth::store {

rt::Task<Result<std::unique_ptr<EventStream>>> EventStream::Open(EtcdLink* link, Revision after) {
  CO_TRY(std::unique_ptr<EtcdLink::Stream> stream,
         co_await link->Open("/etcdserverpb.Watch/Watch"));
  std::unique_ptr<EventStream> events(new EventStream(std::move(stream), after));
  std::string request = WatchAfter(after).SerializeAsString();
  CO_TRY_STATUS(co_await events->stream_->messages().Write(std::move(request)));
  for (bool created = false; !created;) {
    const Status read =
        co_await rt::WithDeadline(events->ReadOne(&created), link->options().try_timeout);
    if (read.Is(Reason::kTimeout)) link->MoveOn(read.Wrap("watch"));
    CO_TRY_STATUS(read);
  }
  co_return std::move(events);
}

rt::Task<Status> EventStream::ReadOne(bool* created) {
  Result<std::optional<std::string>> message = co_await stream_->messages().Read();
  if (!message.ok()) co_return ExplainEtcd(message.status());
  if (!message->has_value()) co_return Unavailable("etcd ended the watch");
  pb::WatchResponse response;
  if (!response.ParseFromString(**message)) co_return Unavailable("etcd's events cannot be read");
  *created = *created || response.created();
  const Status added = assembler_.Add(std::move(response));
  // A watch may be refused with etcd's reason, such as "permission denied".
  co_return added.Is(Reason::kUnavailable) ? ExplainEtcd(added) : added;
}

rt::Task<Result<EventAssembler::Chunk>> EventStream::Read() {
  for (;;) {
    EventAssembler::Chunk chunk = assembler_.Take();
    if (!chunk.events.empty()) co_return std::move(chunk);
    bool created = false;
    CO_TRY_STATUS(co_await ReadOne(&created));
  }
}

}  // namespace berth::store
