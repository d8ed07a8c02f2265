#!/usr/bin/env bash
# Checks and measures a machine with one or several NVIDIA GPUs; every step has a time limit, and its output a file.
#
#   bench/several_gpus.sh FOLDER STEP...
#
# tests       conformance and parallel tests that need CUDA (JOBS=8: with pytest-xdist)
# transports  Airfoil on all GPUs: host, mpi and nccl compared, what the loops hide of them
# strong      Airfoil with 2.88 M and 40 M cells on 1, 2, 4 ... GPUs
# weak        the same with 11.5 M cells a GPU
# mixed       one GPU with the cores of the processor, 720 k ... 40 M cells
# lattice     lattice Boltzmann on one GPU: single, half and double precision, in place, a cavity, immersed bodies
# lattices    the same flow on 1, 2, 4 ... GPUs, and that ranks give the numbers of one rank
# four        much of it side by side on 1, 2, 4 ... GPUs, with a table: bench/gpu_jobs (GPU_JOBS="lattices airfoil ...")
# small       that the mixed run and all kinds of ranks give the numbers of one rank
set -u
cd "$(dirname "$0")/.."
out=$(realpath -m "$1"); shift
mkdir -p "$out"
python=${PYTHON:-python3}
gpus=$(nvidia-smi -L | wc -l)
cores=$(nproc)
numbers=1; for n in 2 4 8; do ((n <= gpus)) && numbers="$numbers,$n"; done

step() {  # step NAME SECONDS COMMAND...: run with a limit; what it prints goes to the end of NAME.log
    local name=$1 limit=$2 start=$SECONDS; shift 2
    timeout --kill-after=10 "$limit" "$@" >"$out/$name.log" 2>&1
    echo "$name: status $?, $((SECONDS - start)) s"
    tail -n "${LINES_SHOWN:-12}" "$out/$name.log"
}
fluxloom() { local name=$1 limit=$2; shift 2; step "$name" "$limit" "$python" -m fluxloom "$@"; }

for wanted in "$@"; do
    case $wanted in
        tests) step tests 480 "$python" -m pytest -q --maxfail=30 -p no:cacheprovider ${JOBS:+-n $JOBS} -m cuda tests/conformance tests/unit/device tests/parallel ;;
        transports) fluxloom transports 240 bench airfoil --ranks "cuda*$gpus" --cells 2.88M --partition rcb --transports --json "$out/transports.json" ;;
        strong) fluxloom strong 500 bench scaling --device cuda --ranks "$numbers" --strong 2.88M,40M --partition rcb --json "$out/strong.json" ;;
        weak) fluxloom weak 300 bench scaling --device cuda --ranks "$numbers" --weak 11.5M --partition rcb --json "$out/weak.json" ;;
        mixed)
            export GOMP_SPINCOUNT=${GOMP_SPINCOUNT:-100000}
            fluxloom mixed 560 bench mixed --ranks "cuda:0,cpu:$((cores - 4))" --strong 720k,2.88M,40M --partition rcb --json "$out/mixed.json" ;;
        small)
            fluxloom small-gpus 120 verify airfoil --ranks "cuda*$gpus"
            fluxloom small-mixed 120 verify airfoil --ranks "cuda:0,cpu:2,opencl"
            ;;
        lattice)
            step lattice-tests 400 "$python" -m pytest -q -p no:cacheprovider ${JOBS:+-n $JOBS} -m cuda \
                tests/conformance/test_lattice*.py tests/conformance/test_sites.py tests/conformance/test_grid*.py \
                tests/conformance/test_stencil*.py tests/conformance/test_slots*.py tests/conformance/test_immersed*.py \
                tests/parallel/test_lattice*.py tests/parallel/test_immersed*.py
            for type in float32 float16 float64; do
                fluxloom "lattice-$type" 120 bench lbm --device cuda --precision $type --json "$out/lbm-$type.json"
                fluxloom "lattice-in-place-$type" 120 bench lbm --device cuda --precision $type --streaming in-place --json "$out/lbm-in-place-$type.json"
                fluxloom "lattice-walls-$type" 120 bench lbm --device cuda --precision $type --walls --json "$out/lbm-walls-$type.json"
            done
            for sites in 1 2 4; do
                fluxloom "lattice-sites-$sites" 60 bench lbm --device cuda --schedule "auto,sites=$sites" --json "$out/lbm-sites-$sites.json"
            done
            fluxloom lattice-bodies 300 bench ib --device cuda --methods coupled --json "$out/ib.json"
            fluxloom lattice-markers 120 bench ib --device cuda --methods alone --json "$out/ib-alone.json" ;;
        lattices)
            for n in ${numbers//,/ }; do
                fluxloom "lattices-$n" 200 bench lbm --ranks "cuda*$n" --cells 512 --json "$out/lbm-x$n.json"
                fluxloom "lattices-weak-$n" 200 bench lbm --ranks "cuda*$n" --cells "512,512,$((512 * n))" --json "$out/lbm-weak-x$n.json"
            done
            step lattices-tests 300 "$python" -m pytest -q -p no:cacheprovider -m cuda tests/parallel/test_lattice_ranks.py tests/parallel/test_halo_numbers.py ;;
        four)
            LINES_SHOWN=60 step four "${LIMIT:-3600}" "$python" bench/gpu_jobs "$out/four" --limit "$((${LIMIT:-3600} - 5))" \
                ${GPU_JOBS:-lattices airfoil compressible flows weak poisson deterministic bits grades faults} ;;
        *) echo "no step $wanted" >&2; exit 2 ;;
    esac
done
