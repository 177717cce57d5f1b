#!/bin/sh
# usage: hacking.sh SOURCE_DIR PLAN: does what HACKING.md says under "Add an operation", "Add a pass", "Add a kernel" and
# "Add a rule" in a copy of the tree, builds, and runs all four. What HACKING.md leaves out does not build here. The
# libraries are static in that build, for static.sh.
set -eu
src=$1 plan=$(realpath "$2")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$src"
tar -cf - --exclude=.git --exclude='./build*' --exclude=./bench/results --exclude=./models/bench --exclude=./docs . | tar -xf - -C "$dir"
cd "$dir"
for section in "## Add an operation" "## Add a pass" "## Add a kernel" "## Add a rule"; do
    grep -qx "$section" HACKING.md || { echo "HACKING.md has no '$section'"; exit 1; }
done

# ---- Add an operation ----
# 1. A row.
cat >>src/op/defs/loss.def <<'END'
OP(Twice, 1, 1, 1, 1, in0, twice, 0)
A_FLOAT(Twice, scale, 2.0f)
END(Twice)
END
# 2. Its shape function.
cat >>src/op/infer_loss.c <<'END'

zc_status zc_infer_twice(zc_infer *f)
{
    zc_infer_copy(f, 0, 0);
    return ZC_OK;
}
END
# 3. Its reference kernel.
cat >>src/cpu/loss.c <<'END'

zc_status zc_k_Twice(zc_kctx *k)
{
    const zc_attrs_Twice *a = ZC_ATTRS(k, Twice);
    int64_t n = zc_tensor_numel(&k->in[0]);
    for (int64_t i = 0; i < n; i++) zc_put(&k->out[0], i, (double)a->scale * zc_get(&k->in[0], i));
    return ZC_OK;
}
END
# 4. ONNX's name for it.
echo 'ALIAS("com.microsoft", "Double", Twice)' >"$dir/row"
sed -i '/^SAME_DOMAIN("ai.onnx")/r row' src/import/onnx_ops.def
# 5. A test.
cat >>tests/meson.build <<'END'
executable('hacking_run', 'hacking/run.c', 'support/onnx_text.c', link_with: libzc_static,
  include_directories: [inc, include_directories('.')], dependencies: [cmocka_dep] + libzc_deps)
END

# ---- Add a pass ----
# 1. The file.
cat >src/passes/opt_once.c <<'END'
#include "passes/passes.h"

/* What multiplies by one does nothing. */
zc_status zc_pass_opt_once(zc_pass *p)
{
    zc_graph *g = p->g;
    for (zc_nid n = 1; n < g->nodes.len; n++) {
        const zc_node *node = zc_node_at(g, n);
        if (node->op != ZC_OP_Twice || ((const zc_attrs_Twice *)node->attrs)->scale != 1) continue;
        zc_graph_forward(g, node->out[0], node->in[0]);
        zc_graph_remove(g, n);
        p->changes++;
    }
    return ZC_OK;
}
END
# 2. A row, and the file in meson.build.
echo 'PASS(opt_once, false, "drop multiplications by one")' >>src/passes/passes.def
sed -i "s/^passes_src = files(/&\n  'opt_once.c',/" src/passes/meson.build
# 3. A golden test.
cat >tests/ir/once.zir <<'END'
# passes: opt_once
graph "once" {
  input %x: f32[n] as "x"
  %t: f32[n] = Twice(%x) {scale = 1} @ "one"
  %y: f32[n] = Twice(%t) {scale = 4} @ "four"
  output %y as "y"
}
---
graph "once" {
  input %x: f32[n] as "x"
  %y: f32[n] = Twice(%x) {scale = 4} @ "four"
  output %y as "y"
}
END

# ---- Add a kernel ----
# 1. The template and its parameters.
cat >templates/twice.cu <<'END'
// Numbers times a factor.
//
// spec.h: Z_T (type).
#include "zc/device.cuh"
#include "abi/twice.h"
#include "spec.h"

ZC_KERNEL(0)(const __grid_constant__ zc_twice_params p) {
    zc_begin();
    for (i64 i = zc_thread(); i < p.total; i += zc_threads())
        zc_save<Z_T>(p.out, i, zc_load<Z_T>(p.in, i) * (zc_compute<Z_T>)p.scale);
}
END
cat >templates/abi/twice.h <<'END'
#ifndef ZC_ABI_TWICE_H
#define ZC_ABI_TWICE_H

struct zc_twice_params {
    const void *in;
    void *out;
    long long total;
    double scale;
};

#endif
END
sed -i "s/^  'det.cu',/&\n  'twice.cu',/; s/^  'abi\/det.h',/&\n  'abi\/twice.h',/" templates/meson.build
# 2. Its generator and its launch function.
cat >src/kernels/twice.c <<'END'
#include "abi/twice.h"
#include "kernels/gen.h"
#include "kernels/launch.h"

zc_status zc_gen_twice(zc_gen *g)
{
    zc_dtype t = zc_gen_in_type(g, 0);
    if (!zc_dtype_is_float(t)) return zc_gen_decline(g, "element type %s", zc_dtype_name(t));
    zc_gen_type(g, "T", t);
    return ZC_OK;
}

zc_status zc_launch_twice(zc_launch *l)
{
    enum { BLOCK = 256 };
    struct zc_twice_params p = {.in = l->in[0].data,
                                .out = l->out[0].data,
                                .total = zc_tensor_numel(&l->in[0]),
                                .scale = ZC_ATTRS(l, Twice)->scale};
    zc_dim3 grid = {zc_launch_blocks(p.total, BLOCK, 0), 1, 1};
    return zc_launch_kernel(l, 0, grid, BLOCK, 0, &p, sizeof p);
}
END
sed -i "s/^kernels_src = files(/&\n  'twice.c',/" src/kernels/meson.build
# 3. Its rows.
cat >>src/op/kernels/misc.def <<'END'
FAMILY(twice, "twice.cu")
KERNEL(Twice, twice)
END
# 4. Its cases.
echo 'C(Twice, twice, "T[n]", "f32 f16", .attrs = "{scale = 3}", .sizes = "n=1; n=300", .flags = KC_FUSED)' \
    >>tests/kernels/cases_misc.def

# ---- Add a rule ----
# 1. The rule.
echo 'rule floor_floor { match o = Floor(Floor(x)); emit o = Floor(x); }' >>rules/activation.zcr
# 2. A golden test.
cat >tests/rules/floor.zrt <<'END'
# builtin
---
graph "floor" {
  input %x: f32[n] as "x"
  %t: f32[n] = Floor(%x) @ "one"
  %y: f32[n] = Floor(%t) @ "two"
  output %y as "y"
}
---
END
cat >>tests/rules/floor.zrt <<END
graph "floor" {
  input %x: f32[n] as "x"
  %y: f32[n] = Floor(%x) @ "two" from "rule floor_floor (activation.zcr:$(wc -l <rules/activation.zcr))"
  output %y as "y"
}
END

machine=
command -v c++ >/dev/null && machine="tests/hostcuda/lib/libcuda.so.1 tests/hostcuda/lib/libnvrtc.so.13"
# shellcheck disable=SC2086
if ! { meson setup build --prefix="$dir/to" --libdir=lib -Ddefault_library=static -Doptimization=0 -Ddebug=false \
    -Dwerror=false && ninja -C build src/libzc_rt.a src/libzc.a tests/hacking_run tests/ir/run_ir tests/rules/run_rules \
    tests/kernels/kernel_check $machine; } >log 2>&1; then
    tail -40 log
    exit 1
fi
./build/tests/hacking_run
./build/tests/ir/run_ir tests/ir/once.zir
./build/tests/rules/run_rules tests/rules/floor.zrt
tests/static.sh build "$dir/to" "$plan"
if [ -z "$machine" ]; then
    echo "the kernel is not run: no C++ compiler"
    exit 0
fi
LD_LIBRARY_PATH=$dir/build/tests/hostcuda/lib ZC_HOSTCUDA_CACHE=$dir/cache ZC_CACHE_DIR=/dev/null \
    ./build/tests/kernels/kernel_check --seed 1 --filter '^Twice/twice' >log || { cat log; exit 1; }
grep -q '^twice  *[1-9][0-9]*  *0 ' log || { cat log; exit 1; }
