// SPDX-License-Identifier: Apache-2.0
// Names for clang's -Wthread-safety. A loop is a capability too: state is GUARDED_BY(loop_), see
// STYLE.md.
#pragma once

#ifdef __clang__
#define BERTH_ANNOTATE(x) __attribute__((x))
#else
#define BERTH_ANNOTATE(x)
#endif

// gRPC's headers bring Abseil's old macros of the same names and meaning.
#undef GUARDED_BY
#undef NO_THREAD_SAFETY_ANALYSIS

#define CAPABILITY(name) BERTH_ANNOTATE(capability(name))
#define SCOPED_CAPABILITY BERTH_ANNOTATE(scoped_lockable)
#define GUARDED_BY(x) BERTH_ANNOTATE(guarded_by(x))
#define REQUIRES(...) BERTH_ANNOTATE(requires_capability(__VA_ARGS__))
#define ACQUIRE(...) BERTH_ANNOTATE(acquire_capability(__VA_ARGS__))
#define RELEASE(...) BERTH_ANNOTATE(release_capability(__VA_ARGS__))
#define EXCLUDES(...) BERTH_ANNOTATE(locks_excluded(__VA_ARGS__))
#define ASSERT_CAPABILITY(x) BERTH_ANNOTATE(assert_capability(x))
#define RETURN_CAPABILITY(x) BERTH_ANNOTATE(lock_returned(x))
#define NO_THREAD_SAFETY_ANALYSIS BERTH_ANNOTATE(no_thread_safety_analysis)
