#!/bin/sh
# The tests of the executor `slurm` start a real Slurm as whoever runs them. Install Debian's where it is missing and we may.
set -u
PATH="$PATH:/usr/sbin"
there() {
    for program in munged slurmctld slurmd sbatch; do command -v "$program" >/dev/null || return 1; done
}
there && exit 0
sudo=
[ "$(id -u)" = 0 ] || sudo="sudo -n"
if command -v apt-get >/dev/null && $sudo true 2>/dev/null; then
    $sudo apt-get update -qq && $sudo env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends slurm-wlm munge >/dev/null
fi
there && exit 0
echo "no Slurm: the tests of its executor are skipped; try: apt-get install slurm-wlm munge" >&2
[ -z "${TORCHGAUGE_REQUIRE_SLURM:-}" ]
