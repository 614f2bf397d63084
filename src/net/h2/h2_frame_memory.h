// SPDX-License-Identifier: Apache-2.0
// Sessions of nghttp2 with memory of ours. It keeps room for a whole frame of 16 KiB per session,
// of which most sessions never use more than the beginning. From the kernel itself, what is not
// used is not there.
#pragma once

#include "net/h2/h2_connection.h"

namespace berth::net {

// `user` is given to the callbacks. The caller deletes the session.
nghttp2_session* NewH2Session(H2Connection::Side side,
                              const nghttp2_session_callbacks& callbacks,
                              const nghttp2_option& options,
                              void* user);

}  // namespace berth::net
