#!/bin/sh
# usage: compile.sh KERNEL_CHECK ARGUMENT...: kernel_check --compile with the NVRTC in the folder ZC_NVRTC
# (scripts/nvrtc.sh). Without it the test is skipped (77).
set -eu
[ -n "${ZC_NVRTC:-}" ] || { echo "ZC_NVRTC is not set"; exit 77; }
[ -d "$ZC_NVRTC" ] || { echo "no folder $ZC_NVRTC"; exit 1; }
export LD_LIBRARY_PATH="$ZC_NVRTC"
exec "$@"
