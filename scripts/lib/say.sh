# SPDX-License-Identifier: Apache-2.0
# Lines for people. Sourced by the scripts; needs bash.

if [[ -t 1 && -z "${NO_COLOR:-}" ]]; then
  say_bold=$'\e[1m' say_red=$'\e[31m' say_green=$'\e[32m' say_plain=$'\e[0m'
else
  say_bold='' say_red='' say_green='' say_plain=''
fi

# One step: "[  12s] text". SECONDS counts from the start of the script.
say() {
  printf '%s[%4ds]%s %s\n' "$say_bold" "$SECONDS" "$say_plain" "$*"
}

say_ok() {
  printf '%s[%4ds] %s%s\n' "$say_green" "$SECONDS" "$*" "$say_plain"
}

# Says what went wrong on standard error and ends the script.
die() {
  printf '%s[%4ds] error: %s%s\n' "$say_red" "$SECONDS" "$*" "$say_plain" >&2
  exit 1
}

# no_arguments SCRIPT ARGUMENT...: -h and --help show the comment at the script's head; nothing else is known.
no_arguments() {
  (($# > 1)) || return 0
  case $2 in
    -h | --help) sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$1" && exit 0 ;;
    *) printf 'unknown argument: %s (see --help)\n' "$2" >&2 && exit 2 ;;
  esac
}

# show_progress LOG: copies a build's output to LOG. On a terminal all of it is shown; elsewhere one
# progress line per 15 seconds, and everything that is not a progress line (a warning, an error).
show_progress() {
  local log=$1
  if [[ -t 1 ]]; then
    tee "$log"
    return
  fi
  local line last=-15
  : >"$log"
  while IFS= read -r line; do
    printf '%s\n' "$line" >>"$log"
    if [[ $line == \[+([0-9])/+([0-9])\]* ]]; then
      ((SECONDS - last >= 15)) || continue
      last=$SECONDS
    fi
    printf '  %s\n' "$line"
  done
}
shopt -s extglob
