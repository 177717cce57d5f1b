/* Cases of rows/index.def; see check.h. */
C(Gather, gather, "T[n,5]; i64[m]~int(-5,4)", MOVED, .attrs = "{axis = 1}", .sizes = NM,
  .flags = KC_MOVES, .bench = "n=65536,m=64")
C(Gather, gather, "T[7,n]; i32[m,2]~int(0,6)", MOVED,
  .sizes = "n=33,m=5; n=1,m=1; n=64,m=33; n=6,m=0; n=1025,m=2", .flags = KC_MOVES,
  .bench = "n=4096,m=4096")
C(GatherND, gather, "T[7,5,n]; i64[m,2]~int(-5,4)", "f32 f16 u8 f64",
  .sizes = "n=33,m=5; n=1,m=1; n=3,m=1025; n=3,m=0", .flags = KC_MOVES, .bench = "n=4096,m=4096")
C(GatherND, gather, "T[m,5,n]; i64[m,1]~int(0,4)", "f32", .attrs = "{batch_dims = 1}",
  .sizes = "n=33,m=5; n=1,m=1", .flags = KC_MOVES)
C(GatherElements, gather, "T[n,5]; i64[n,m]~int(-5,4)", "f32 f16 u8 f64", .attrs = "{axis = 1}",
  .sizes = NM, .flags = KC_MOVES, .bench = "n=65536,m=64")
#define SCATTER(mode, types, fl)                                                                   \
    C(ScatterElements, scatter, "T[n,5]; i64[n,m]~int(-5,4); T[n,m]", types,                       \
      .attrs = "{axis = 1, reduction = \"" mode "\"}",                                             \
      .sizes = "n=7,m=3; n=1,m=1; n=33,m=5; n=1025,m=2; n=4,m=0", .flags = fl,                     \
      .bench = "n=1048576,m=4")                                                                    \
    C(ScatterND, scatter, "T[7,n]; i64[m,1]~int(-7,6); T[m,n]", types,                             \
      .attrs = "{reduction = \"" mode "\"}",                                                       \
      .sizes = "n=7,m=3; n=1,m=1; n=33,m=40; n=1025,m=2; n=4,m=0", .flags = fl,                    \
      .bench = "n=1048576,m=4")
SCATTER("none", "f32 f16 u8 i64", KC_MOVES)
SCATTER("add", "f32 f16 bf16 i32", KC_FUSED | KC_WITH_CANCEL)
SCATTER("mul", "f32 f16 i64", KC_FUSED)
SCATTER("max", "f32 f16 i32 u8", KC_NUMBERS)
SCATTER("min", "f32 f16", KC_NUMBERS)
C(TensorScatter, tensor_scatter, "T[n,2,8,5]; T[n,2,3,5]; i64[n]~int(0,5)", "f32 f16 u8",
  .sizes = "n=2; n=1; n=33", .flags = KC_MOVES, .bench = "n=65536")
C(TensorScatter, tensor_scatter, "T[n,8,5]; T[n,3,5]; i64[n]~int(0,7)", "f32 f16",
  .attrs = "{axis = 1, mode = \"circular\"}", .sizes = "n=2; n=1; n=33", .flags = KC_MOVES)
C(OneHot, one_hot, "i64[n]~int(-7,7); i64[]=[5]; T[2]", "f32 f16 i64 u8", .sizes = N,
  .flags = KC_EXACT, .bench = "n=4194304")
C(OneHot, one_hot, "i32[n,3]~int(0,4); i64[1]=[5]; T[2]", "f32", .attrs = "{axis = 1}", .sizes = N,
  .flags = KC_EXACT)
C(TopK, topk, "T[n,m]; i64[1]=[3]", F " i64 i32 u8", .outs = "yy",
  .sizes = "n=7,m=33; n=1,m=3; n=3,m=1025; n=33,m=32; n=0,m=5", .large = "n=3,m=100003",
  .flags = KC_NUMBERS | KC_WITH_MASKED, .bench = WIDE)
C(TopK, topk, "T[n,m,3]; i64[1]=[5]", "f32 f16", .attrs = "{axis = 1, largest = 0}", .outs = "yy",
  .sizes = "n=7,m=33; n=1,m=5; n=2,m=1025", .flags = KC_NUMBERS)
C(NonZero, select, "T[n,m]~int(0,1)", "f32 f16 i64 bool u8", .sizes = NM, .flags = KC_EXACT,
  .bench = WIDE)
C(NonZero, select, "T[n]", "f32 f16", .sizes = N, .flags = KC_MOVES)
C(Compress, select, "T[n,m]; bool[m]", "f32 f16 u8 f64", .attrs = "{axis = 1}", .sizes = NM,
  .flags = KC_MOVES, .bench = WIDE)
C(Compress, select, "T[n,m]; bool[n]", "f32", .sizes = "n=7,m=33; n=1,m=1; n=3,m=1025; n=0,m=5",
  .flags = KC_MOVES)
C(Unique, unique, "T[n]~int(0,9)", "f32 f16 i64 i32 u8", .outs = "yyyy", .sizes = N,
  .flags = KC_EXACT, .bench = "n=65536")
C(Unique, unique, "T[n]~int(0,9)", "f32 i64", .attrs = "{sorted = 0}", .outs = "yyyy", .sizes = N,
  .flags = KC_EXACT)
C(Unique, unique, "T[n,3]~int(0,1)", "f32 i64", .attrs = "{axis = 0}", .outs = "yyyy",
  .sizes = "n=33; n=1; n=2; n=31; n=129", .flags = KC_EXACT)
C(NonMaxSuppression, nms,
  "f32[2,n,4]~unit; f32[2,3,n]~unit; i64[1]=[5]; f32[1]=[0.5]; f32[1]=[0.1]", "f32", .sizes = N,
  .flags = KC_EXACT, .bench = "n=4096")
C(NonMaxSuppression, nms, "f32[1,n,4]~unit; f32[1,1,n]~unit; i64[1]=[9]; f32[1]=[0.3]", "f32",
  .attrs = "{center_point_box = 1}", .sizes = N, .flags = KC_EXACT)
