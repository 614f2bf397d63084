// SPDX-License-Identifier: Apache-2.0
// Tells ThreadSanitizer of the order that gRPC guarantees: its library is not instrumented, so what
// it synchronises looks like a race. Nothing in other builds.
#pragma once

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BERTH_TSAN
#endif
#endif

#ifdef BERTH_TSAN
extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace berth::net {

// What was done before happens before the reactions of `tag`.
inline void ToGrpcOf([[maybe_unused]] const void* tag) {
#ifdef BERTH_TSAN
  __tsan_release(const_cast<void*>(tag));
#endif
}

// First thing in a reaction: it happens after all that was handed to gRPC with this tag.
inline void FromGrpcOf([[maybe_unused]] const void* tag) {
#ifdef BERTH_TSAN
  __tsan_acquire(const_cast<void*>(tag));
#endif
}

// Lives around a call into gRPC: ToGrpcOf(tag), and what gRPC's templates touch during the call is
// theirs.
class [[nodiscard]] IntoGrpc {
 public:
  explicit IntoGrpc(const void* tag) {
    ToGrpcOf(tag);
#ifdef BERTH_TSAN
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
#endif
  }
  ~IntoGrpc() {
#ifdef BERTH_TSAN
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
#endif
  }
  IntoGrpc(const IntoGrpc&) = delete;
  IntoGrpc& operator=(const IntoGrpc&) = delete;
};

// The tag of servers: a method runs after its server was started.
inline constexpr char kGrpcServerTag = 0;

}  // namespace berth::net
