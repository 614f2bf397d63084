// SPDX-License-Identifier: Apache-2.0
// What an H2Connection has to say, and how nghttp2 takes it.
#include <nghttp2/nghttp2.h>

#include <utility>
#include <vector>

#include "net/h2/h2_connection.h"

namespace berth::net {
namespace {

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

}  // namespace

// Where nghttp2 has the messages of a call from; `user` is the connection.
struct H2Sending {
  static ssize_t ReadData(nghttp2_session*,
                          int32_t id,
                          uint8_t* into,
                          size_t size,
                          uint32_t* flags,
                          nghttp2_data_source*,
                          void* user) {
    H2Connection& connection = *static_cast<H2Connection*>(user);
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

  static nghttp2_data_provider Provider() {
    return {.source = {.ptr = nullptr}, .read_callback = ReadData};
  }
};

Result<std::shared_ptr<CallStream>> H2Connection::Request(const H2Fields& fields,
                                                          const RpcLimits& limits) {
  if (!usable()) return lost_.value_or(Unavailable("the server takes no new calls"));
  const nghttp2_data_provider provider = H2Sending::Provider();
  const std::vector<nghttp2_nv> nv = ToNv(fields);
  const int32_t id =
      nghttp2_submit_request(session_, nullptr, nv.data(), nv.size(), &provider, nullptr);
  if (id < 0) return Unavailable(std::string("http/2: ") + nghttp2_strerror(id));
  auto call = std::make_shared<CallStream>(*this, id, limits);
  streams_.emplace(id, Entry{.call = call, .head_sent = true});
  WakeWriter();
  return call;
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
  const nghttp2_data_provider provider = H2Sending::Provider();
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

}  // namespace berth::net
