// SPDX-License-Identifier: Apache-2.0
#include "net/h2/h2_connection.h"

#include <fmt/core.h>
#include <malloc.h>
#include <nghttp2/nghttp2.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <unordered_set>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/thread_annotations.h"
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
constexpr size_t kGoawayTextMax = 256;
constexpr size_t kFrameHeadBytes = 9;
constexpr double kBytesPerToken = 1'024;
constexpr double kStrayBytesPerToken = 256;
constexpr double kStrayFrameTokens = 1.0 / 16;
// Of frames that HTTP/2 lets us ignore, over the life of a connection.
constexpr uint64_t kIgnoredBytesMax = 1024 * 1024;

std::string_view View(const uint8_t* bytes, size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

std::vector<nghttp2_nv> ToNv(const H2Fields& fields) {
  std::vector<nghttp2_nv> result;
  result.reserve(fields.size());
  for (const H2Field& field : fields) {
    // The library copies both and does not write to them.
    auto* name = reinterpret_cast<uint8_t*>(const_cast<char*>(field.name.data()));
    auto* value = reinterpret_cast<uint8_t*>(const_cast<char*>(field.value.data()));
    const bool unlike_any_other = field.name == "grpc-message" || field.name.ends_with("-bin");
    const uint8_t flags = unlike_any_other ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE;
    result.push_back({name, value, field.name.size(), field.value.size(), flags});
  }
  return result;
}

Status StatusOfReset(uint32_t error_code) {
  const std::string text = nghttp2_http2_strerror(error_code);
  if (error_code == NGHTTP2_ENHANCE_YOUR_CALM) {
    return {Reason::kTooManyRequests, "the peer has reset the call: " + text};
  }
  return Unavailable("the peer has reset the call: " + text);
}

// nghttp2 keeps room for a whole frame of 16 KiB per session, of which most sessions never use more
// than the beginning. From the kernel itself, what is not used is not there.
class FrameMemory {
 public:
  static nghttp2_mem* Table() {
    static nghttp2_mem table = {.mem_user_data = nullptr,
                                .malloc = &Allocate,
                                .free = &Free,
                                .calloc = &AllocateZeroed,
                                .realloc = &Reallocate};
    return &table;
  }

 private:
  static constexpr size_t kMappedMin = 16 * 1024;
  // In front of a mapped block. Others have none: nghttp2 asks for powers of two, which would need
  // the next larger class of the allocator.
  struct alignas(64) Head {
    size_t bytes = 0;
  };
  static constexpr uintptr_t kPage = 4'096;

  // The mapped blocks, of all threads.
  struct Mapped {
    Mutex mutex;
    std::unordered_set<const void*> blocks GUARDED_BY(mutex);
  };
  static Mapped& AllMapped() {
    static auto* all = new Mapped();
    return *all;
  }
  static bool IsMapped(const void* memory) {
    if (reinterpret_cast<uintptr_t>(memory) % kPage != sizeof(Head)) return false;
    Mapped& all = AllMapped();
    const MutexLock lock(all.mutex);
    return all.blocks.contains(memory);
  }
  static size_t SizeOf(void* memory) {
    return IsMapped(memory) ? (static_cast<Head*>(memory) - 1)->bytes
                            : ::malloc_usable_size(memory);
  }

  static void* Allocate(size_t bytes, void*) {
    if (bytes < kMappedMin) return std::malloc(bytes);
    void* block = ::mmap(
        nullptr, sizeof(Head) + bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) return nullptr;
    void* memory = new (block) Head{.bytes = bytes} + 1;
    Mapped& all = AllMapped();
    const MutexLock lock(all.mutex);
    all.blocks.insert(memory);
    return memory;
  }
  static void Free(void* memory, void*) {
    if (memory == nullptr) return;
    if (!IsMapped(memory)) return std::free(memory);
    Head* head = static_cast<Head*>(memory) - 1;
    {
      Mapped& all = AllMapped();
      const MutexLock lock(all.mutex);
      all.blocks.erase(memory);
    }
    ::munmap(head, sizeof(Head) + head->bytes);
  }
  static void* AllocateZeroed(size_t count, size_t bytes, void*) {
    if (bytes != 0 && count > SIZE_MAX / 2 / bytes) return nullptr;
    return count * bytes < kMappedMin ? std::calloc(count, bytes)
                                      : Allocate(count * bytes, nullptr);
  }
  static void* Reallocate(void* memory, size_t bytes, void*) {
    if (memory == nullptr) return Allocate(bytes, nullptr);
    if (bytes < kMappedMin && !IsMapped(memory)) return std::realloc(memory, bytes);
    void* fresh = Allocate(bytes, nullptr);
    if (fresh == nullptr) return nullptr;
    std::memcpy(fresh, memory, std::min(bytes, SizeOf(memory)));
    Free(memory, nullptr);
    return fresh;
  }
};

}  // namespace

// nghttp2's C callbacks; `user` is the connection.
struct H2Callbacks {
  static H2Connection& Of(void* user) { return *static_cast<H2Connection*>(user); }

  static int OnBeginFrame(nghttp2_session*, const nghttp2_frame_hd* head, void* user) {
    const H2Connection::FrameHead begun{.type = head->type,
                                        .flags = head->flags,
                                        .stream = head->stream_id,
                                        .length = head->length};
    if (!Of(user).OnFrameBegins(begun)) Of(user).RefuseFlood();
    return 0;
  }

  static int OnBeginHeaders(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    if (frame->hd.type == NGHTTP2_HEADERS) Of(user).OnHeadersBegin(frame->hd.stream_id);
    return 0;
  }

  static int OnHeader(nghttp2_session*,
                      const nghttp2_frame* frame,
                      const uint8_t* name,
                      size_t name_size,
                      const uint8_t* value,
                      size_t value_size,
                      uint8_t,
                      void* user) {
    H2Connection::Entry* entry = Of(user).Find(frame->hd.stream_id);
    if (entry == nullptr) return 0;
    Of(user).OnField(*entry, View(name, name_size), View(value, value_size));
    return 0;
  }

  static int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    H2Connection& connection = Of(user);
    const bool ends_stream = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    H2Connection::Entry* entry = connection.Find(frame->hd.stream_id);
    switch (frame->hd.type) {
      case NGHTTP2_HEADERS:
        if (entry != nullptr) connection.OnHeaders(*entry, ends_stream);
        break;
      case NGHTTP2_DATA:
        if (entry != nullptr && ends_stream) {
          if (connection.side_ == H2Connection::Side::kServer) {
            entry->call->ReceiveEnd();
          } else {
            entry->call->EndWith(Unavailable("the server ended the call without a status"));
          }
        }
        break;
      case NGHTTP2_SETTINGS:
        if ((frame->hd.flags & NGHTTP2_FLAG_ACK) == 0) connection.ready_.Set();
        break;
      case NGHTTP2_GOAWAY:
        connection.OnGoaway(frame->goaway.error_code,
                            View(frame->goaway.opaque_data, frame->goaway.opaque_data_len));
        break;
      default: break;
    }
    return 0;
  }

  static int OnData(
      nghttp2_session* session, uint8_t, int32_t id, const uint8_t* data, size_t size, void* user) {
    // The connection's window is given back at once: a call that nobody reads holds up itself only.
    nghttp2_session_consume_connection(session, size);
    const H2Connection::Entry* entry = Of(user).Find(id);
    if (entry != nullptr) entry->call->Receive(View(data, size));
    return 0;
  }

  static int OnClose(nghttp2_session*, int32_t id, uint32_t error_code, void* user) {
    Of(user).OnStreamClosed(id, error_code);
    return 0;
  }

  static int OnFrameSent(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
    H2Connection& connection = Of(user);
    if (frame->hd.type == NGHTTP2_DATA) {
      connection.flood_.Earn(static_cast<double>(frame->hd.length) / kBytesPerToken);
    }
    // A server that has said its last word wants no more of the client's.
    const bool last = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if (connection.side_ == H2Connection::Side::kServer && last &&
        nghttp2_session_get_stream_remote_close(session, frame->hd.stream_id) == 0) {
      nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_NO_ERROR);
    }
    return 0;
  }

  static ssize_t ReadData(nghttp2_session*,
                          int32_t id,
                          uint8_t* into,
                          size_t size,
                          uint32_t* flags,
                          nghttp2_data_source*,
                          void* user) {
    H2Connection& connection = Of(user);
    H2Connection::Entry* entry = connection.Find(id);
    if (entry == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    CallStream& call = *entry->call;
    const size_t filled = call.Fill({reinterpret_cast<char*>(into), size});
    const bool is_server = connection.side_ == H2Connection::Side::kServer;
    // What a server's handler says with WritesDone() is said once its status is known.
    const bool ends =
        call.is_drained() && call.writes_done() && (!is_server || call.final_status().has_value());
    if (!ends) return filled == 0 ? ssize_t{NGHTTP2_ERR_DEFERRED} : static_cast<ssize_t>(filled);
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (is_server) {
      *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
      connection.SubmitTrailers(*entry, *call.final_status());
    }
    return static_cast<ssize_t>(filled);
  }

  static const nghttp2_session_callbacks* Table() {
    static const nghttp2_session_callbacks* table = [] {
      nghttp2_session_callbacks* made = nullptr;
      CHECK(nghttp2_session_callbacks_new(&made) == 0) << "out of memory";
      nghttp2_session_callbacks_set_on_begin_frame_callback(made, OnBeginFrame);
      nghttp2_session_callbacks_set_on_begin_headers_callback(made, OnBeginHeaders);
      nghttp2_session_callbacks_set_on_header_callback(made, OnHeader);
      nghttp2_session_callbacks_set_on_frame_recv_callback(made, OnFrame);
      nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, OnData);
      nghttp2_session_callbacks_set_on_stream_close_callback(made, OnClose);
      nghttp2_session_callbacks_set_on_frame_send_callback(made, OnFrameSent);
      return made;
    }();
    return table;
  }

  static const nghttp2_option* Options() {
    static const nghttp2_option* options = [] {
      nghttp2_option* made = nullptr;
      CHECK(nghttp2_option_new(&made) == 0) << "out of memory";
      nghttp2_option_set_no_auto_window_update(made, 1);
      nghttp2_option_set_no_closed_streams(made, 1);
      return made;
    }();
    return options;
  }

  static nghttp2_data_provider Provider() {
    return {.source = {.ptr = nullptr}, .read_callback = ReadData};
  }
};

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
  const auto create =
      side == Side::kServer ? nghttp2_session_server_new3 : nghttp2_session_client_new3;
  const int created =
      create(&session_, H2Callbacks::Table(), this, H2Callbacks::Options(), FrameMemory::Table());
  CHECK(created == 0) << "out of memory";
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
  Tick();
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
    out->append(View(bytes, static_cast<size_t>(size)));
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

Result<std::shared_ptr<CallStream>> H2Connection::Request(const H2Fields& fields,
                                                          const RpcLimits& limits) {
  if (!usable()) return lost_.value_or(Unavailable("the server takes no new calls"));
  const nghttp2_data_provider provider = H2Callbacks::Provider();
  const std::vector<nghttp2_nv> nv = ToNv(fields);
  const int32_t id =
      nghttp2_submit_request(session_, nullptr, nv.data(), nv.size(), &provider, nullptr);
  if (id < 0) return Unavailable(std::string("http/2: ") + nghttp2_strerror(id));
  auto call = std::make_shared<CallStream>(*this, id, limits);
  streams_.emplace(id, Entry{.call = call, .head_sent = true});
  WakeWriter();
  return call;
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
  WakeWriter();
}

RpcPeer H2Connection::peer() const {
  return {.address = stream_->peer_address(),
          .certificate_der = stream_->peer_certificate_der(),
          .certificate_state = stream_->peer_certificate_state()};
}

void H2Connection::ResumeSending(CallStream& call) {
  Entry* entry = Find(call.id());
  if (entry == nullptr) return;
  if (entry->head_sent) {
    nghttp2_session_resume_data(session_, call.id());
  } else if (call.is_drained() && call.final_status().has_value()) {
    SubmitTrailers(*entry, *call.final_status());
  } else {
    SubmitHead(*entry);
  }
  WakeWriter();
}

void H2Connection::SubmitHead(Entry& entry) {
  entry.head_sent = true;
  const H2Fields head = GrpcResponseHead();
  const std::vector<nghttp2_nv> nv = ToNv(head);
  const nghttp2_data_provider provider = H2Callbacks::Provider();
  nghttp2_submit_response(session_, entry.call->id(), nv.data(), nv.size(), &provider);
}

void H2Connection::SubmitTrailers(Entry& entry, const Status& status) {
  const H2Fields fields = GrpcTrailers(status);
  if (std::exchange(entry.head_sent, true)) {
    const std::vector<nghttp2_nv> nv = ToNv(fields);
    nghttp2_submit_trailer(session_, entry.call->id(), nv.data(), nv.size());
    return;
  }
  H2Fields head = GrpcResponseHead();
  head.insert(head.end(), fields.begin(), fields.end());
  const std::vector<nghttp2_nv> nv = ToNv(head);
  nghttp2_submit_response(session_, entry.call->id(), nv.data(), nv.size(), nullptr);
}

void H2Connection::SendAbort(CallStream& call, const Status& why) {
  Entry* entry = Find(call.id());
  if (entry == nullptr) return;
  if (side_ == Side::kServer && !call.final_status().has_value()) {
    // Trailers are not subject to flow control: they pass what is stuck. OnFrameSent resets the
    // client's half.
    SubmitTrailers(*entry, why);
    WakeWriter();
  } else {
    Reset(call.id(), NGHTTP2_CANCEL);
  }
}

void H2Connection::Reset(int32_t id, uint32_t error_code) {
  nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, error_code);
  WakeWriter();
}

void H2Connection::GiveWindow(CallStream& call, size_t bytes) {
  nghttp2_session_consume_stream(session_, call.id(), bytes);
  if (nghttp2_session_want_write(session_) != 0) WakeWriter();
}

void H2Connection::WakeWriters() {
  for (auto& [id, entry] : streams_) entry.call->WakeWriters();
}

H2Connection::Entry* H2Connection::Find(int32_t id) {
  const auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : &found->second;
}

// Counts frames that cost us something and give nothing. False if there are too many.
bool H2Connection::OnFrameBegins(const FrameHead& head) {
  accounted_bytes_ += kFrameHeadBytes + head.length;
  if (head.type == NGHTTP2_DATA && head.length > 0) {
    if (Find(head.stream) != nullptr) {
      flood_.Earn(1);
      return true;
    }
    // For a call that is over. A window full of it may be on its way, in small pieces too.
    return flood_.Spend(
        Now(), std::max(kStrayFrameTokens, static_cast<double>(head.length) / kStrayBytesPerToken));
  }
  const bool is_end = head.type == NGHTTP2_DATA && (head.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  if (is_end || head.type == NGHTTP2_HEADERS || head.type == NGHTTP2_GOAWAY) return true;
  return flood_.Spend(Now());
}

void H2Connection::OnHeadersBegin(int32_t id) {
  if (Find(id) == nullptr) {
    if (side_ == Side::kClient) return;
    streams_.emplace(id, Entry{.call = std::make_shared<CallStream>(*this, id, RpcLimits())});
  }
  Entry& entry = streams_.at(id);
  entry.fields.clear();
  entry.fields_cost = 0;
}

void H2Connection::OnField(Entry& entry, std::string_view name, std::string_view value) {
  entry.fields_cost += FieldCost(name, value);
  if (entry.call->over() || entry.fields_cost > limits_.header_list_bytes_max) return;
  entry.fields.push_back({std::string(name), std::string(value)});
}

void H2Connection::OnHeaders(Entry& entry, bool ends_stream) {
  const H2Fields fields = std::exchange(entry.fields, {});
  if (entry.fields_cost > limits_.header_list_bytes_max) {
    entry.call->Abort({Reason::kRequestTooLarge,
                       fmt::format("header fields of {} bytes, the limit is {}",
                                   entry.fields_cost,
                                   limits_.header_list_bytes_max)});
    return;
  }
  if (side_ == Side::kClient) {
    OnAnswerHeaders(entry, fields, ends_stream);
    return;
  }
  if (!std::exchange(entry.head_received, true)) calls_.emplace_back(entry.call, fields);
  if (ends_stream) entry.call->ReceiveEnd();
}

void H2Connection::OnAnswerHeaders(Entry& entry, const H2Fields& fields, bool ends_stream) {
  if (!std::exchange(entry.head_received, true)) {
    const Status checked = CheckGrpcResponse(fields);
    if (!checked.ok()) {
      entry.call->Abort(checked);
      return;
    }
  }
  if (!ends_stream) return;
  const bool sending = !entry.call->writes_done() || !entry.call->is_drained();
  entry.call->EndWith(StatusOfTrailers(fields));
  if (sending) Reset(entry.call->id(), NGHTTP2_NO_ERROR);
}

void H2Connection::OnGoaway(uint32_t error_code, std::string_view text) {
  draining_ = true;
  if (error_code == NGHTTP2_NO_ERROR && text.empty()) return;
  if (!peer_reason_.empty()) return;
  peer_reason_ = fmt::format("the peer ends the connection ({})",
                             text.empty() ? nghttp2_http2_strerror(error_code)
                                          : std::string(text.substr(0, kGoawayTextMax)));
}

void H2Connection::OnStreamClosed(int32_t id, uint32_t error_code) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  const std::shared_ptr<CallStream> call = std::move(found->second.call);
  streams_.erase(found);
  if (streams_.empty()) idle_since_ = Now();
  call->Detach(side_ == Side::kServer && error_code == NGHTTP2_CANCEL
                   ? Unavailable("the client has cancelled the call")
                   : StatusOfReset(error_code));
}

void H2Connection::Tick() {
  const Time now = Now();
  if (now - heard_ >= limits_.keepalive_interval) Ping(now);
  if (lost_.has_value()) return;
  if (side_ == Side::kServer && streams_.empty() && now - idle_since_ >= limits_.idle_timeout) {
    Drain();
  }
  TickStreams(now);
  const Duration shortest = std::min({limits_.keepalive_interval,
                                      limits_.keepalive_timeout,
                                      limits_.idle_timeout,
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
