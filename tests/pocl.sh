#!/bin/sh
# Before the tests: `sh tests/pocl.sh PYTHON` installs PoCL, OpenCL on the processor, on a Debian system that has
# no OpenCL platform, if it may. Says in one line what it did, or why tests will be skipped; never fails.
python=${1:-python3}
packages="ocl-icd-libopencl1 pocl-opencl-icd"
skipped="tests marked opencl will be skipped"

platforms() { "$python" -c 'import pyopencl; raise SystemExit(not pyopencl.get_platforms())' >/dev/null 2>&1; }

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

get() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=60 -o Acquire::Retries=1 \
        -o Acquire::http::Timeout=30 "$@" >/dev/null 2>&1 </dev/null
}

if ! "$python" -c 'import pyopencl' >/dev/null 2>&1; then
    echo "OpenCL: pyopencl is not installed; $skipped"
elif platforms; then
    :
elif [ "${POCL:-yes}" = no ]; then
    echo "OpenCL: no platform, and POCL=no; $skipped"
elif ! command -v apt-get >/dev/null 2>&1; then
    echo "OpenCL: no platform; $skipped unless a driver is installed (PoCL serves every processor)"
elif [ "$(id -u)" -ne 0 ] && ! sudo -n true >/dev/null 2>&1; then
    echo "OpenCL: no platform; $skipped (install one: sudo apt install pocl-opencl-icd)"
elif { get install -y --no-install-recommends $packages ||
    { get update; get install -y --no-install-recommends $packages; }; } && platforms; then
    echo "OpenCL: installed pocl-opencl-icd, a driver for the processor"
else
    echo "OpenCL: pocl-opencl-icd did not install; $skipped"
fi
exit 0
