// SPDX-License-Identifier: Apache-2.0
// Scripts for shells. Each asks `berth __complete WORDS...`, which answers one candidate per line,
// with a tab and a description, and ":files" where the shell should offer files.
#include <array>

#include "cli/arguments.h"
#include "cli/commands/table.h"
#include "cli/failure.h"
#include "cli/session/session.h"

namespace berth::cli {
namespace {

constexpr std::string_view kBash =
    R"sh(# bash completion for berth; load with: source <(berth completion bash)
_berth() {
  local cur="${COMP_WORDS[COMP_CWORD]}" line words=() i
  # "=" and ":" split words in bash; the program wants them whole.
  local text="${COMP_LINE:0:COMP_POINT}"
  read -r -a words <<< "$text"
  [[ "$text" == *' ' ]] && words+=("")
  local last="${words[${#words[@]}-1]}"
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ "$line" == ":files" ]]; then
      compopt -o filenames 2>/dev/null
      local typed="${last#--*=}"
      while IFS= read -r i; do COMPREPLY+=("$i"); done < <(compgen -f -- "$typed")
    elif [[ -n "$line" ]]; then
      line="${line%%$'\t'*}"
      # What stands before the last word break is on the line already.
      COMPREPLY+=("${line#"${last%"$cur"}"}")
    fi
  done < <(berth __complete "${words[@]:1}" 2>/dev/null)
  if [[ ${#COMPREPLY[@]} -eq 1 && ( "${COMPREPLY[0]}" == *= || "${COMPREPLY[0]}" == */ ) ]]; then
    compopt -o nospace 2>/dev/null
  fi
}
complete -F _berth berth
)sh";

constexpr std::string_view kZsh = R"sh(#compdef berth
# zsh completion for berth; load with: source <(berth completion zsh)
_berth() {
  local -a candidates
  local line files=0
  while IFS= read -r line; do
    if [[ "$line" == ":files" ]]; then
      files=1
    elif [[ -n "$line" ]]; then
      local word="${line%%$'\t'*}" about=""
      [[ "$line" == *$'\t'* ]] && about="${line#*$'\t'}"
      candidates+=("${word//:/\\:}${about:+:$about}")
    fi
  done < <(berth __complete "${words[@]:1:$((CURRENT-1))}" 2>/dev/null)
  (( files )) && _files
  (( ${#candidates} )) && _describe 'berth' candidates
}
if [[ "$funcstack[1]" == "_berth" ]]; then
  _berth
else
  compdef _berth berth
fi
)sh";

constexpr std::string_view kFish =
    R"sh(# fish completion for berth; load with: berth completion fish | source
function __berth_complete
  set -l words (commandline -opc) (commandline -ct)
  for line in (berth __complete $words[2..-1] 2>/dev/null)
    if test "$line" = ":files"
      __fish_complete_path (commandline -ct)
    else
      echo $line
    end
  end
end
complete -c berth -f -a '(__berth_complete)'
)sh";

Status RunCompletion(Session& session, const Arguments& arguments) {
  const std::string shell = arguments.words().empty() ? "" : arguments.words().front();
  if (shell == "bash") {
    session.out() << kBash;
  } else if (shell == "zsh") {
    session.out() << kZsh;
  } else if (shell == "fish") {
    session.out() << kFish;
  } else {
    return Advise(BadRequest("one shell is needed: bash, zsh or fish"),
                  "source <(berth completion bash)");
  }
  return OkStatus();
}

constexpr std::array<std::string_view, 3> kShells = {"bash", "zsh", "fish"};

}  // namespace

Command CompletionCommand() {
  return {.name = "completion",
          .group = "Server",
          .usage = "bash | zsh | fish",
          .summary = "Print a script that completes commands, kinds and names",
          .examples =
              "source <(berth completion bash)\n"
              "berth completion fish > ~/.config/fish/completions/berth.fish",
          .word_values = kShells,
          .run = &RunCompletion};
}

}  // namespace berth::cli
