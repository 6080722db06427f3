#!/bin/sh
# The dashboard's tests drive a real Chromium. Install Debian's where it is missing and we may.
set -u
browser=${TORCHGAUGE_CHROMIUM:-/usr/bin/chromium}
[ -x "$browser" ] && exit 0
sudo=
[ "$(id -u)" = 0 ] || sudo="sudo -n"
if command -v apt-get >/dev/null && $sudo true 2>/dev/null; then
    $sudo apt-get update -qq && $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null
fi
[ -x "$browser" ] && exit 0
echo "no Chromium at $browser; try: apt-get install chromium, or set TORCHGAUGE_CHROMIUM" >&2
exit 1
