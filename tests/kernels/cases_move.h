/* Cases of rows/move.def; see check.h. */
C(Identity, move, "T[n,3]", MOVED, .sizes = N, .flags = KC_MOVES | KC_VIEW)
C(Reshape, move, "T[n,6]; i64[3]=[-1,2,3]", "f32 i8", .sizes = N, .flags = KC_MOVES | KC_VIEW)
C(Squeeze, move, "T[n,1,2]; i64[1]=[1]", "f32 i8", .sizes = N, .flags = KC_MOVES | KC_VIEW)
C(Unsqueeze, move, "T[n,2]; i64[1]=[1]", "f32 i8", .sizes = N, .flags = KC_MOVES | KC_VIEW)
C(Flatten, move, "T[n,2,3]", "f32 i8", .sizes = N, .flags = KC_MOVES | KC_VIEW)
C(BitCast, move, "T[n,3]", "f32:i32 f16:u16 f64:i64 i8:u8", .attrs = "{to = $U}", .sizes = N,
  .flags = KC_EXACT, .bench = "n=4194304")
C(Dropout, move, "T[n,3]", "f32 f16", .outs = "yy", .sizes = N, .flags = KC_MOVES,
  .bench = "n=4194304")
C(Transpose, move, "T[n,m]", MOVED " c64", .sizes = NM, .large = "n=1025,m=2049", .flags = KC_MOVES,
  .bench = WIDE)
C(Transpose, move, "T[n,5,m]", "f32 f16 u8", .attrs = "{perm = [2,0,1]}", .sizes = NM,
  .flags = KC_MOVES)
C(Transpose, move, "T[n,3,m,8]", "f32 f16 u8", .attrs = "{perm = [0,2,1,3]}", .sizes = NM,
  .flags = KC_MOVES, .bench = "n=512,m=512")
C(DepthToSpace, move, "T[n,8,3,m]", "f32 f16 u8", .attrs = "{blocksize = 2}",
  .sizes = "n=2,m=5; n=1,m=1; n=3,m=33; n=0,m=2", .flags = KC_MOVES, .bench = "n=64,m=16384")
C(DepthToSpace, move, "T[n,8,3,m]", "f32 f16", .attrs = "{blocksize = 2, mode = \"CRD\"}",
  .sizes = "n=2,m=5; n=1,m=1; n=3,m=33", .flags = KC_MOVES)
C(SpaceToDepth, move, "T[n,3,4,m]", "f32 f16 u8", .attrs = "{blocksize = 2}",
  .sizes = "n=2,m=10; n=1,m=2; n=3,m=66; n=0,m=4", .flags = KC_MOVES, .bench = "n=64,m=16384")
C(Concat, move, "T[n,3]; T[n,m]; T[n,1]", MOVED, .attrs = "{axis = 1}", .sizes = NM,
  .flags = KC_MOVES, .bench = WIDE)
C(Concat, move, "T[n,m]; T[3,m]; T[m,m]", "f32 f16", .attrs = "{axis = 0}",
  .sizes = "n=2,m=5; n=0,m=33; n=31,m=1", .flags = KC_MOVES)
C(Split, move, "T[n,7]; i64[3]=[3,0,4]", MOVED, .attrs = "{axis = 1}", .outs = "yyy", .sizes = N,
  .flags = KC_MOVES)
C(Split, move, "T[n,m]", "f32 f16", .attrs = "{axis = 1, num_outputs = 3}", .outs = "yyy",
  .sizes = "n=5,m=9; n=33,m=31; n=1,m=3", .flags = KC_MOVES, .bench = "n=4096,m=4095")
C(Slice, move, "T[n,9]; i64[1]=[1]; i64[1]=[8]; i64[1]=[1]; i64[1]=[3]", MOVED, .sizes = N,
  .flags = KC_MOVES, .bench = "n=4194304")
C(Slice, move, "T[n,m]; i64[2]=[-1,1]; i64[2]=[-9999,9999]; i64[2]=[0,1]; i64[2]=[-2,1]",
  "f32 f16 u8", .sizes = NM, .flags = KC_MOVES, .bench = WIDE)
C(Expand, move, "T[n,1]; i64[3]=[2,1,5]", MOVED, .sizes = N, .flags = KC_MOVES,
  .bench = "n=1048576")
C(Expand, move, "T[1,m]; i64[2]~val(n,m)", "f32 f16", .sizes = NM, .flags = KC_MOVES)
C(Tile, move, "T[n,3]; i64[2]=[2,3]", MOVED, .sizes = N, .flags = KC_MOVES, .bench = "n=1048576")
C(Pad, pad, "T[n,m]; i64[4]=[1,2,0,3]; T[]=[7]", "f32 f16 u8 f64 i64", .sizes = NM,
  .flags = KC_MOVES, .bench = WIDE)
C(Pad, pad, "T[n,m]; i64[4]=[1,-1,0,3]", "f32 f16", .sizes = "n=7,m=33; n=1,m=1; n=31,m=1025",
  .flags = KC_MOVES)
C(Pad, pad, "T[n,m]; i64[4]=[1,2,0,3]", "f32 f16", .attrs = "{mode = \"reflect\"}",
  .sizes = "n=7,m=33; n=2,m=4; n=31,m=1025", .flags = KC_MOVES)
C(Pad, pad, "T[n,m]; i64[4]=[1,2,0,3]", "f32 u8", .attrs = "{mode = \"edge\"}",
  .sizes = "n=7,m=33; n=1,m=1; n=31,m=1025", .flags = KC_MOVES)
C(Pad, pad, "T[n,m]; i64[4]=[1,2,0,3]", "f32 f16", .attrs = "{mode = \"wrap\"}",
  .sizes = "n=7,m=33; n=2,m=4; n=31,m=1025", .flags = KC_MOVES)
C(CenterCropPad, pad, "T[n,m]; i64[2]=[5,40]", "f32 f16 u8",
  .sizes = "n=7,m=33; n=1,m=1; n=31,m=1025; n=4,m=41", .flags = KC_MOVES)
C(CenterCropPad, pad, "T[n,m]; i64[1]=[2048]", "f32", .attrs = "{axes = [1]}",
  .sizes = "n=7,m=33; n=3,m=4096", .flags = KC_MOVES, .bench = WIDE)
C(ConstantOfShape, create, "i64[2]~val(n,5)", "f32 f16 i64 u8 bool", .attrs = "{value = $T[1] [1]}",
  .sizes = N, .flags = KC_EXACT, .bench = "n=4194304")
C(EyeLike, create, "T[n,m]", "f32 f16 i32 bool", .attrs = "{k = 1}", .sizes = NM, .flags = KC_EXACT,
  .bench = WIDE)
C(EyeLike, create, "T[n,m]", "f32:i64", .attrs = "{k = -2, dtype = $U}", .sizes = NM,
  .flags = KC_EXACT)
C(Trilu, create, "T[n,m]", MOVED, .sizes = NM, .flags = KC_MOVES, .bench = WIDE)
C(Trilu, create, "T[3,n,m]; i64[]=[-1]", "f32 f16", .attrs = "{upper = 0}", .sizes = NM,
  .flags = KC_MOVES)
C(Range, range, "T[]~val(1); T[]~val(n); T[]~val(2)", "i64 i32 f32 f64 i16",
  .sizes = "n=33; n=2; n=1; n=64; n=1025; n=2049", .bench = "n=16777217")
C(Range, range, "T[]~val(n); T[]~val(-3); T[]~val(-0.3)", "f32 f64", .sizes = "n=33; n=2; n=300")
C(ReverseSequence, reverse, "T[m,n,3]; i64[n]~int(1,4)", MOVED,
  .sizes = "n=5,m=6; n=1,m=4; n=33,m=31", .flags = KC_MOVES)
C(ReverseSequence, reverse, "T[n,m]; i64[n]~int(1,4)", "f32 f16",
  .attrs = "{batch_axis = 0, time_axis = 1}", .sizes = "n=5,m=6; n=1,m=4; n=33,m=1025",
  .flags = KC_MOVES, .bench = WIDE)
