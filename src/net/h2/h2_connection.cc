// SPDX-License-Identifier: Apache-2.0
#include "net/h2/h2_connection.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "base/check.h"
#include "net/h2/h2_frame_memory.h"
#include "rt/sleep.h"

namespace berth::net {
namespace {

// One TLS record. Shared by all connections of a thread: it is filled and used up in one turn.
thread_local std::array<char, 16 * 1024> read_buffer;
// The output of a turn. The next writer of the thread takes it over, so that an idle connection has
// none.
thread_local std::string spare_output;
constexpr size_t kWriteBytesMax = 64 * 1024;
// Reads of one connection before others get a turn.
constexpr int kReadsPerTurn = 4;
// Frames that wait for a peer that takes nothing; until they are gone we do not read from it.
constexpr size_t kStuckFramesMax = 512;
constexpr int32_t kConnectionWindow = 1024 * 1024;
constexpr Duration kTickMin = Duration::Millis(10);
// For the peer to take our last word.
constexpr Duration kFarewellMax = Duration::Seconds(2);
// Of frames that HTTP/2 lets us ignore, over the life of a connection.
constexpr uint64_t kIgnoredBytesMax = 1024 * 1024;

}  // namespace

H2Connection::H2Connection(Side side,
                           std::unique_ptr<Stream> stream,
                           const H2Limits& limits,
                           OnCall on_call)
    : CallTransport(limits.received_bytes_max, limits.queued_bytes_max),
      side_(side),
      limits_(limits),
      on_call_(std::move(on_call)),
      stream_(std::move(stream)),
      flood_(limits.control_frames_burst, limits.control_frames_per_second, stream_->loop().Now()),
      heard_(stream_->loop().Now()),
      idle_since_(heard_) {
  session_ = NewH2Session(side, Callbacks(), Options(), this);
  SubmitSettings();
  written_.Set();
}

H2Connection::~H2Connection() {
  CHECK(reading_ == nullptr) << "a connection is destroyed while it runs";
  loop().CancelTimer(tick_);
  Lose(Unavailable("the connection is closed"));
  nghttp2_session_del(session_);
}

void H2Connection::SubmitSettings() {
  std::vector<nghttp2_settings_entry> settings = {
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits_.window_bytes},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits_.header_list_bytes_max},
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits_.streams_max},
  };
  if (side_ == Side::kClient) {
    settings.push_back({NGHTTP2_SETTINGS_ENABLE_PUSH, 0});
  } else {
    settings.push_back({NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1});
  }
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kConnectionWindow);
}

rt::Task<Status> H2Connection::Run() {
  rt::TaskScope writing(loop());
  rt::ChildContext child(co_await rt::CurrentContext());
  reading_ = &child;
  if (!terminated_) Tick();
  stream_->SetReadDeadline(Now() + limits_.settings_timeout);
  stream_->SetWriteTimeout(limits_.write_timeout);
  writing.Spawn("h2.write", WriteAll());
  WakeWriter();
  rt::Task<Status> reading = ReadAll();
  Status status = co_await reading.In(child.context());
  reading_ = nullptr;
  if (lost_.has_value()) status = *lost_;
  if (status.ok()) status = Unavailable("the connection is closed");
  if (!peer_reason_.empty()) status = status.Wrap(peer_reason_);
  Lose(status);
  CO_TRY_STATUS(co_await writing.Close());
  stream_->Shutdown();
  co_return status;
}

rt::Task<Status> H2Connection::WaitReady() {
  CO_TRY_STATUS(co_await ready_.Wait());
  co_return lost_.value_or(OkStatus());
}

rt::Task<Status> H2Connection::ReadAll() {
  for (int reads = 1;; ++reads) {
    if (!written_.is_set()) CO_TRY_STATUS(co_await written_.Wait());
    CO_TRY(const size_t size, co_await stream_->Read(read_buffer));
    if (size == 0) co_return Unavailable("the peer closed the connection");
    CO_TRY_STATUS(Receive(std::span(read_buffer).first(size)));
    if (reads % kReadsPerTurn == 0) CO_TRY_STATUS(co_await rt::Yield());
  }
}

Status H2Connection::Receive(std::span<const char> bytes) {
  const bool was_ready = ready_.is_set();
  heard_ = Now();
  pinged_.reset();
  const ssize_t used = nghttp2_session_mem_recv(
      session_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  if (used < 0) {
    return Unavailable(std::string("http/2: ") + nghttp2_strerror(static_cast<int>(used)));
  }
  received_total_ += bytes.size();
  if (received_total_ > accounted_bytes_ + kIgnoredBytesMax) RefuseFlood();
  if (!was_ready && ready_.is_set()) stream_->SetReadDeadline(std::nullopt);
  DispatchCalls();
  if (nghttp2_session_want_write(session_) != 0 || IsDone()) WakeWriter();
  return OkStatus();
}

void H2Connection::DispatchCalls() {
  auto calls = std::exchange(calls_, {});
  for (auto& [call, fields] : calls) {
    Result<CallHead> head = ParseGrpcRequest(fields);
    if (head.ok()) {
      on_call_(std::move(call), *std::move(head));
    } else {
      call->Finish(head.status());
    }
  }
}

bool H2Connection::IsDone() const {
  return nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0;
}

void H2Connection::WakeWriter() {
  write_wanted_ = true;
  if (writer_ != nullptr) writer_->Complete(OkStatus());
}

rt::Task<Status> H2Connection::WriteAll() {
  for (;;) {
    while (!write_wanted_) {
      rt::Leaf<Status> wanted;
      writer_ = &wanted;
      const Status woken = co_await wanted;
      writer_ = nullptr;
      CO_TRY_STATUS(woken);
    }
    write_wanted_ = false;
    std::string out = std::exchange(spare_output, {});
    for (Gather(&out); !out.empty(); Gather(&out)) {
      const std::string_view part = out;
      if (nghttp2_session_get_outbound_queue_size(session_) > kStuckFramesMax) written_.Reset();
      const Status written = co_await stream_->Write(std::span(&part, 1));
      written_.Set();
      if (!written.ok()) {
        Lose(written);
        co_return OkStatus();
      }
      out.clear();
    }
    if (out.capacity() <= 2 * kWriteBytesMax) spare_output = std::move(out);
    if (IsDone()) {
      Lose(Unavailable("the connection is closed"));
      co_return OkStatus();
    }
  }
}

// As much output as one write takes.
void H2Connection::Gather(std::string* out) {
  while (out->size() < kWriteBytesMax) {
    const uint8_t* bytes = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_, &bytes);
    if (size < 0) {
      Lose(Unavailable(std::string("http/2: ") + nghttp2_strerror(static_cast<int>(size))));
      return;
    }
    if (size == 0) return;
    out->append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
  }
}

void H2Connection::Lose(Status why) {
  if (!lost_.has_value()) lost_ = std::move(why);
  draining_ = true;
  ready_.Set();
  calls_.clear();
  auto streams = std::exchange(streams_, {});
  for (auto& [id, entry] : streams) entry.call->Detach(*lost_);
  if (reading_ != nullptr) reading_->Cancel();
}

bool H2Connection::usable() const {
  return !lost_.has_value() && !draining_ && nghttp2_session_check_request_allowed(session_) != 0;
}

void H2Connection::Drain() {
  if (std::exchange(draining_, true)) return;
  nghttp2_submit_goaway(session_,
                        NGHTTP2_FLAG_NONE,
                        nghttp2_session_get_last_proc_stream_id(session_),
                        NGHTTP2_NO_ERROR,
                        nullptr,
                        0);
  WakeWriter();
}

void H2Connection::Terminate(uint32_t error_code, std::string_view text) {
  draining_ = true;
  if (std::exchange(terminated_, true)) return;
  nghttp2_submit_goaway(session_,
                        NGHTTP2_FLAG_NONE,
                        nghttp2_session_get_last_proc_stream_id(session_),
                        error_code,
                        reinterpret_cast<const uint8_t*>(text.data()),
                        text.size());
  nghttp2_session_terminate_session(session_, error_code);
  loop().CancelTimer(tick_);
  tick_ = loop().After("h2.farewell", kFarewellMax, [this] {
    Lose(Unavailable("the peer takes nothing, and the connection is ended"));
  });
  WakeWriter();
}

RpcPeer H2Connection::peer() const {
  return {.address = stream_->peer_address(),
          .certificate_der = stream_->peer_certificate_der(),
          .certificate_state = stream_->peer_certificate_state()};
}

void H2Connection::WakeWriters() {
  for (auto& [id, entry] : streams_) entry.call->WakeWriters();
}

H2Connection::Entry* H2Connection::Find(int32_t id) {
  const auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : &found->second;
}

void H2Connection::Tick() {
  const Time now = Now();
  if (now - heard_ >= limits_.keepalive_interval) Ping(now);
  if (lost_.has_value()) return;
  if (side_ == Side::kServer && streams_.empty() && now - idle_since_ >= limits_.idle_timeout) {
    Drain();
  }
  if (side_ == Side::kServer) TickHeads(now);
  TickStreams(now);
  if (terminated_) return;
  const Duration shortest = std::min({limits_.keepalive_interval,
                                      limits_.keepalive_timeout,
                                      limits_.idle_timeout,
                                      limits_.head_timeout,
                                      limits_.stall_timeout});
  tick_ = loop().After("h2.tick", std::max(kTickMin, shortest / 2), [this] { Tick(); });
}

void H2Connection::Ping(Time now) {
  if (!pinged_.has_value()) {
    pinged_ = now;
    nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr);
    WakeWriter();
  } else if (now - *pinged_ >= limits_.keepalive_timeout) {
    Lose(Unavailable("the peer has been silent for " + FormatDuration(now - heard_)));
  }
}

// Between the frames of one head nothing else may come: half a head holds up the whole connection.
void H2Connection::TickHeads(Time now) {
  for (const auto& [id, entry] : streams_) {
    if (entry.head_received || now - entry.begun < limits_.head_timeout) continue;
    Terminate(kEnhanceYourCalm, "the head of a call does not end");
    return;
  }
}

void H2Connection::TickStreams(Time now) {
  std::vector<std::shared_ptr<CallStream>> stalled;
  for (const auto& [id, entry] : streams_) {
    const std::optional<Time> since = entry.call->stuck_since();
    if (since.has_value() && now - *since >= limits_.stall_timeout) stalled.push_back(entry.call);
  }
  for (const auto& call : stalled) {
    call->Abort(Timeout("the peer takes nothing for " + FormatDuration(limits_.stall_timeout)));
  }
}

}  // namespace berth::net
