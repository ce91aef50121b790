# need PACKAGE …: installs by apt those that are missing, and asks the network for nothing if none is.
need() {
  local name missing=()
  for name in "$@"; do
    dpkg-query -W -f '${Status}' "$name" 2>/dev/null | grep -q '^install ok installed' || missing+=("$name")
  done
  ((${#missing[@]})) || return 0
  echo "installing ${missing[*]}"
  local install=(env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}")
  "${install[@]}" &>/dev/null || { apt-get update -qq && "${install[@]}" >/dev/null; }
}
