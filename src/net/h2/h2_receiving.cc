// SPDX-License-Identifier: Apache-2.0
// An H2Connection as nghttp2 tells it what has come.
#include <fmt/core.h>
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "net/h2/h2_connection.h"

namespace berth::net {
namespace {

constexpr size_t kGoawayTextMax = 256;
constexpr size_t kFrameHeadBytes = 9;
constexpr double kBytesPerToken = 1'024;
constexpr double kStrayBytesPerToken = 256;
constexpr double kStrayFrameTokens = 1.0 / 16;

std::string_view View(const uint8_t* bytes, size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

Status StatusOfReset(uint32_t error_code) {
  const std::string text = nghttp2_http2_strerror(error_code);
  if (error_code == NGHTTP2_ENHANCE_YOUR_CALM) {
    return {Reason::kTooManyRequests, "the peer has reset the call: " + text};
  }
  return Unavailable("the peer has reset the call: " + text);
}

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
};

const nghttp2_session_callbacks& H2Connection::Callbacks() { return *H2Callbacks::Table(); }

const nghttp2_option& H2Connection::Options() { return *H2Callbacks::Options(); }

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
    streams_.emplace(
        id, Entry{.call = std::make_shared<CallStream>(*this, id, RpcLimits()), .begun = Now()});
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
  if (!std::exchange(entry.head_received, true)) {
    Charge(entry);
    calls_.emplace_back(entry.call, fields);
  }
  if (ends_stream) entry.call->ReceiveEnd();
}

// A call keeps what is in its head, which may be as large as a message.
void H2Connection::Charge(Entry& entry) {
  entry.charged = entry.fields_cost;
  CountReceived(static_cast<int64_t>(entry.charged));
  const Status fits = CheckReceived();
  if (!fits.ok()) entry.call->Abort(fits);
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
  CountReceived(-static_cast<int64_t>(found->second.charged));
  streams_.erase(found);
  if (streams_.empty()) idle_since_ = Now();
  call->Detach(side_ == Side::kServer && error_code == NGHTTP2_CANCEL
                   ? Unavailable("the client has cancelled the call")
                   : StatusOfReset(error_code));
}

}  // namespace berth::net
