# need PACKAGE …: installs by apt those that are missing, and asks the network for nothing if none is.
need() {
  local missing
  missing=$(for name in "$@"; do dpkg-query -W -f '${Status}' "$name" 2>/dev/null | grep -q '^install ok' || echo "$name"; done)
  [[ -n $missing ]] || return 0
  export DEBIAN_FRONTEND=noninteractive
  # shellcheck disable=SC2086 # one word a package
  apt-get install -qq -y --no-install-recommends $missing >/dev/null 2>&1 ||
    { apt-get update -qq && apt-get install -qq -y --no-install-recommends $missing >/dev/null; }
}
