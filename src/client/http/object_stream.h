// SPDX-License-Identifier: Apache-2.0
// Objects and watch events as they come over the wire.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "client/client.h"
#include "meta/kind.h"
#include "meta/object.h"
#include "meta/value.h"
#include "net/http_client.h"
#include "rt/task.h"

namespace berth::client {

// Fields that this program does not know are dropped: the server may be newer.
Result<meta::Object> ReadObject(const meta::KindInfo& kind, std::string_view json);
Result<meta::Object> ReadObject(const meta::KindInfo& kind,
                                const meta::Value& value,
                                Detail detail);

// A watch on an answer with one JSON event per line.
Result<std::unique_ptr<ObjectWatch>> MakeObjectStream(const meta::KindInfo& kind,
                                                      std::unique_ptr<net::HttpStream> stream,
                                                      Detail detail);

// The body of an answer that is no watch; its beginning if it is long.
rt::Task<Result<std::string>> ReadRefusal(net::HttpStream* stream);

}  // namespace berth::client
