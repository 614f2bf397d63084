// SPDX-License-Identifier: Apache-2.0
#include "app/process/crash_line.h"

#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigaction, which <csignal> has not
#include <unistd.h>

#include <atomic>

#include "base/check.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define BERTH_SANITIZED
#include <sanitizer/common_interface_defs.h>
#endif
#endif

namespace berth::app {
namespace {

std::atomic<const std::string*> spoken{nullptr};
static_assert(decltype(spoken)::is_always_lock_free, "a signal handler reads it");

// Called where anything may be broken: nothing is allocated, locked or looked up.
void Say() {
  const std::string* line = spoken.load();
  if (line == nullptr) return;
  [[maybe_unused]] const ssize_t ignored = write(STDERR_FILENO, line->data(), line->size());
}

void OnCrash(int /*signal*/) {
  Say();
  _exit(1);
}

#ifdef BERTH_SANITIZED
// The sanitizer takes the others, reports where it was, and then calls us.
constexpr std::array kSignals = {SIGABRT, SIGILL};
#else
constexpr std::array kSignals = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
// Where the stack is used up the handler needs another one. It calls write() only.
std::array<char, size_t{64} * 1024> other_stack;
#endif

void Handle(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_ONSTACK;
  for (const int number : kSignals) CHECK(sigaction(number, &action, nullptr) == 0) << number;
}

}  // namespace

CrashLine::CrashLine() {
  CHECK(spoken.exchange(lines_.data()) == nullptr) << "there is a crash line already";
#ifdef BERTH_SANITIZED
  __sanitizer_set_death_callback(&Say);
#else
  stack_t stack = {};
  stack.ss_sp = other_stack.data();
  stack.ss_size = other_stack.size();
  CHECK(sigaltstack(&stack, nullptr) == 0);
#endif
  Handle(&OnCrash);
}

CrashLine::~CrashLine() {
  Handle(SIG_DFL);
  spoken.store(nullptr);
}

void CrashLine::Set(const std::string& line) {
  now_ = 1 - now_;
  lines_.at(now_) = line + "\n";
  spoken.store(&lines_.at(now_));
}

}  // namespace berth::app
