# SPDX-License-Identifier: Apache-2.0
# The server that scripts/up starts and scripts/down stops. Sourced after say.sh; needs $root.

if [[ -n "${BERTH_DATA_DIR:-}" ]]; then
  data_dir=$BERTH_DATA_DIR
elif ((EUID == 0)); then
  data_dir=/var/lib/berth
else
  data_dir=${XDG_DATA_HOME:-$HOME/.local/share}/berth
fi
binary=${BERTH_BINARY:-$root/build/release/src/app/berth}
kubeconfig=$data_dir/kubeconfig
host_dir=${BERTH_HOST_DIR:-$data_dir-host}
pid_file=$data_dir/berth.pid
log_file=$data_dir/log/berth.log

# Prints the process id of the running server of this data folder; fails if there is none. The pid file alone proves
# nothing after a reboot, so the process must also be a `berth up` on this folder.
server_pid() {
  local pid
  pid=$(cat "$pid_file" 2>/dev/null) || return 1
  [[ $pid =~ ^[0-9]+$ && -r /proc/$pid/cmdline ]] || return 1
  # A process that has ended but was not reaped yet has an empty command line.
  tr '\0' '\n' <"/proc/$pid/cmdline" 2>/dev/null | grep -qxF -- "$data_dir" || return 1
  echo "$pid"
}

start_server() {
  [[ -x $binary ]] || die "there is no $binary; build it with: cmake --build build/release --target berth"
  mkdir -p "$data_dir" "$data_dir/log"
  chmod 0700 "$data_dir" "$data_dir/log"
  local listen=()
  [[ -z "${BERTH_LISTEN:-}" ]] || listen=(--listen "$BERTH_LISTEN")
  say "starting: berth up --data-dir $data_dir ${listen[*]}"
  setsid nohup "$binary" up --data-dir "$data_dir" "${listen[@]}" >>"$log_file" 2>&1 </dev/null &
  echo $! >"$pid_file"
  disown
}

server_answers() {
  [[ -s $kubeconfig ]] && KUBECONFIG=$kubeconfig "$binary" get namespaces >/dev/null 2>&1
}

wait_until_ready() {
  local deadline=$((SECONDS + $1))
  until server_answers; do
    # By its number alone: right after the fork its command line is still this script's.
    if ! kill -0 "$(cat "$pid_file")" 2>/dev/null; then
      tail -n 20 "$log_file" >&2
      die "the server ended; its log is $log_file"
    fi
    if ((SECONDS >= deadline)); then
      tail -n 20 "$log_file" >&2
      die "the server did not answer within $1 s; its log is $log_file"
    fi
    sleep 0.1
  done
}

# A host's processes get ten seconds each before they are killed.
stop_timeout_s=45

# SIGTERM, then SIGKILL for one that does not listen: the store survives both.
stop_server() {
  local pid=$1 deadline=$((SECONDS + stop_timeout_s))
  kill -TERM "$pid" 2>/dev/null || true
  while server_pid >/dev/null && ((SECONDS < deadline)); do sleep 0.1; done
  if server_pid >/dev/null; then
    say "it did not stop within $stop_timeout_s s: killing it"
    kill -KILL "$pid" 2>/dev/null || true
    while server_pid >/dev/null; do sleep 0.1; done
  fi
  rm -f "$pid_file"
}

print_next_steps() {
  local url
  url=$(awk '$1 == "server:" { print $2; exit }' "$kubeconfig")
  cat <<TEXT

  API server   $url
  kubeconfig   $kubeconfig
  log          $log_file, $host_dir/log/

Next:

  export KUBECONFIG=$kubeconfig PATH=$(dirname "$binary"):\$PATH
  berth get machines,volumes,machinepools
  berth console hello
  kubectl get namespaces
  scripts/down
TEXT
}
