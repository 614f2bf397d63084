# SPDX-License-Identifier: Apache-2.0
# Configures and builds presets. Sourced after say.sh; needs $root, the top of the repository.

# How many compilers at once: BERTH_JOBS, or one per core as far as memory allows. A sanitized file with heavy
# headers takes up to 1.5 GB.
build_jobs() {
  local cores memory_kb by_memory
  if [[ -n "${BERTH_JOBS:-}" ]]; then
    echo "$BERTH_JOBS"
    return
  fi
  cores=$(nproc)
  memory_kb=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo)
  by_memory=$((memory_kb / 1500000))
  ((by_memory >= 1)) || by_memory=1
  echo $((cores < by_memory ? cores : by_memory))
}

# build_preset PRESET TARGET...: configures (cheap when nothing changed) and builds.
build_preset() {
  local preset=$1 jobs start=$SECONDS
  shift
  jobs=$(build_jobs)
  mkdir -p "$root/build/log"
  local log=$root/build/log/$preset.log
  say "building $preset: $* ($jobs at a time)"
  if ! (cd "$root" && cmake --preset "$preset") >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    die "cmake --preset $preset failed; the whole output is in ${log#"$root"/}"
  fi
  if ! cmake --build "$root/build/$preset" -j "$jobs" --target "$@" 2>&1 | show_progress "$log"; then
    [[ -t 1 ]] || tail -n 60 "$log" >&2
    die "the build of $preset failed; the whole output is in ${log#"$root"/}"
  fi
  say "built $preset in $((SECONDS - start)) s"
}
