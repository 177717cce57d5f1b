/* Cases of rows/conv.def; see check.h. */
#define IMAGE  "n=2,h=9,w=11; n=1,h=3,w=3; n=3,h=17,w=33; n=1,h=32,w=31; n=0,h=5,w=5"
#define IMAGES "n=32,h=56,w=56"
#define CONV   (KC_WIDE | KC_WITH_BIG | KC_WITH_CANCEL | KC_WITH_EQUAL)
C(Conv, conv, "T[n,6,h,w]; T[8,3,3,3]~small; T[8]", F,
  .attrs = "{group = 2, pads = [1,1,1,1], strides = [2,1]}", .sizes = IMAGE, .flags = CONV)
C(Conv, conv, "T[n,5,h,w]; T[7,5,1,1]~small; T[7]", F, .sizes = IMAGE, .flags = CONV)
C(Conv, conv, "T[n,64,h,w]; T[64,64,3,3]~small; T[64]", "f32 f16", .attrs = "{pads = [1,1,1,1]}",
  .sizes = "n=1,h=7,w=7; n=2,h=5,w=9", .flags = CONV, .bench = IMAGES, .flops = "2*n*h*w*64*64*9")
C(Conv, conv, "T[n,6,h,w]; T[6,1,3,3]~small", "f32 f16", .attrs = "{group = 6, pads = [1,0,1,2]}",
  .sizes = IMAGE, .flags = CONV)
C(Conv, conv, "T[n,256,h,w]; T[256,1,3,3]~small", "f32 f16",
  .attrs = "{group = 256, pads = [1,1,1,1]}", .sizes = "n=1,h=5,w=5", .bench = IMAGES,
  .flops = "2*n*h*w*256*9")
C(Conv, conv, "T[n,4,m]; T[6,4,5]~small; T[6]", "f32 f16 bf16",
  .attrs = "{dilations = [2], auto_pad = \"SAME_UPPER\"}", .sizes = "n=2,m=33; n=1,m=9; n=3,m=1025",
  .flags = CONV)
C(Conv, conv, "T[n,3,h,w,5]; T[4,3,3,2,2]~small", "f32 f16", .sizes = "n=2,h=5,w=6; n=1,h=3,w=2",
  .flags = CONV)
C(ConvInteger, conv, "T[n,4,h,w]; U[6,4,3,3]; T[]~int(0,9); U[]~int(0,9)", "u8:i8 u8:u8 i8:i8",
  .attrs = "{pads = [1,1,1,1]}", .sizes = IMAGE, .flags = KC_WITH_BIG, .bench = IMAGES,
  .flops = "2*n*h*w*4*6*9")
C(ConvNhwc, conv, "T[n,h,w,6]; T[8,3,3,3]~small; T[8]", "f32",
  .attrs = "{group = 2, pads = [1,1,1,1], activation = \"Relu\"}", .sizes = IMAGE, .flags = CONV)
C(ConvNhwc, conv, "T[n,h,w,64]; T[64,64,3,3]~small; T[64]; T[n,h,w,64]", "f32",
  .attrs = "{pads = [1,1,1,1]}", .sizes = "n=1,h=7,w=7; n=2,h=5,w=9", .flags = CONV,
  .bench = IMAGES, .flops = "2*n*h*w*64*64*9")
C(ConvTranspose, conv, "T[n,4,h,w]; T[4,3,3,3]~small; T[6]", F,
  .attrs = "{group = 2, strides = [2,2], pads = [1,0,0,1], output_padding = [1,0]}", .sizes = IMAGE,
  .flags = CONV)
C(ConvTranspose, conv, "T[n,32,h,w]; T[32,32,2,2]~small", "f32 f16", .attrs = "{strides = [2,2]}",
  .sizes = "n=1,h=5,w=7", .flags = CONV, .bench = IMAGES, .flops = "2*n*h*w*32*32*4")
C(ConvTranspose, conv, "T[n,4,m]; T[4,3,5]~small", "f32 f16",
  .attrs = "{dilations = [2], strides = [3]}", .sizes = "n=2,m=33; n=1,m=1", .flags = CONV)
C(DeformConv, conv, "T[n,4,h,w]; T[6,4,3,3]~small; T[n,18,h-2,w-2]~unit; T[6]; T[n,9,h-2,w-2]~unit",
  "f32 f16 f64", .sizes = "n=2,h=9,w=11; n=1,h=3,w=3", .flags = KC_WIDE | KC_FUSED, .bench = IMAGES,
  .flops = "2*n*h*w*4*6*9")
C(FusedConv, conv, "T[n,4,h,w]; T[6,4,3,3]~small; T[6]; T[n,6,h,w]", "f32 f16",
  .attrs = "{pads = [1,1,1,1], activation = \"Relu\"}", .sizes = IMAGE, .flags = CONV | KC_FUSED,
  .bench = IMAGES, .flops = "2*n*h*w*4*6*9")
C(FusedConv, conv, "T[n,4,h,w]; T[6,4,3,3]~small; T[6]", "f32",
  .attrs = "{activation = \"LeakyRelu\", activation_params = [0.1]}", .sizes = "n=2,h=9,w=11",
  .flags = KC_FUSED | KC_WIDE)
C(FusedConv, conv, "T[n,4,h,w]; T[6,4,3,3]~small; T[6]", "f32", .attrs = "{activation = \"Tanh\"}",
  .sizes = "n=2,h=9,w=11", .flags = KC_FUSED | KC_WIDE)
C(QLinearConv, conv,
  "T[n,4,h,w]; f32[]=[0.05]; T[]=[3]; U[6,4,3,3]; f32[6]~pos; U[6]~int(0,3); f32[]=[0.5]; T[]=[5]; "
  "i32[6]",
  "u8:i8 u8:u8 i8:i8", .attrs = "{pads = [1,1,1,1]}", .sizes = IMAGE, .flags = KC_WITH_BIG,
  .bench = IMAGES, .flops = "2*n*h*w*4*6*9")
#define POOLED    (KC_FUSED | KC_WITH_BIG | KC_WITH_EQUAL | KC_WITH_TINY | KC_WITH_CANCEL)
#define POOLBENCH "n=32,h=112,w=112"
C(AveragePool, pool, "T[n,3,h,w]", F,
  .attrs = "{kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]}", .sizes = IMAGE,
  .flags = POOLED, .bench = POOLBENCH)
C(AveragePool, pool, "T[n,3,h,w]", "f32 f16",
  .attrs = "{kernel_shape = [3,2], ceil_mode = 1, count_include_pad = 1, pads = [1,1,1,0], strides "
           "= [2,3]}",
  .sizes = IMAGE, .flags = POOLED)
C(GlobalAveragePool, pool, "T[n,5,h,w]", F, .sizes = IMAGE, .large = "n=2,h=513,w=257",
  .flags = POOLED | KC_WIDE, .bench = POOLBENCH)
C(GlobalLpPool, pool, "T[n,5,h,w]", F, .sizes = IMAGE, .flags = KC_FUSED | KC_WIDE,
  .bench = POOLBENCH)
C(GlobalLpPool, pool, "T[n,5,h,w]", "f32 f16", .attrs = "{p = 3}", .sizes = IMAGE,
  .flags = KC_FUSED | KC_WIDE)
C(GlobalMaxPool, pool, "T[n,5,h,w]", F, .sizes = IMAGE, .flags = KC_NUMBERS | KC_WITH_MASKED,
  .bench = POOLBENCH)
C(LpPool, pool, "T[n,3,h,w]", F, .attrs = "{kernel_shape = [3,3], pads = [1,1,1,1]}",
  .sizes = IMAGE, .flags = KC_FUSED, .bench = POOLBENCH)
C(MaxPool, pool, "T[n,3,h,w]", F " i8 u8",
  .attrs = "{kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]}", .outs = "yy",
  .sizes = IMAGE, .flags = KC_NUMBERS | KC_WITH_MASKED, .bench = POOLBENCH)
C(MaxPool, pool, "T[n,3,h,w]", "f32 f16",
  .attrs = "{kernel_shape = [2,3], dilations = [2,1], ceil_mode = 1, storage_order = 1}",
  .outs = "yy", .sizes = "n=2,h=9,w=11; n=3,h=17,w=33", .flags = KC_NUMBERS)
C(MaxPool, pool, "T[n,3,m]", "f32", .attrs = "{kernel_shape = [4], strides = [3]}",
  .sizes = "n=2,m=33; n=1,m=4", .flags = KC_NUMBERS)
C(MaxPoolNhwc, pool, "T[n,h,w,5]", "f32 f16",
  .attrs = "{kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]}", .sizes = IMAGE,
  .flags = KC_NUMBERS, .bench = POOLBENCH)
C(MaxUnpool, unpool, "T[1,1,m]; i64[1,1,m]~perm", "f32 f16 f64",
  .attrs = "{kernel_shape = [2], strides = [2]}", .sizes = "m=33; m=1; m=1025",
  .flags = KC_EXACT | KC_WITH_BIG, .bench = "m=1000001")
C(MaxUnpool, unpool, "T[1,1,2,2]; i64[1,1,2,2]=[5,7,13,15]; i64[4]=[1,1,5,5]", "f32 f16",
  .attrs = "{kernel_shape = [2,2], strides = [2,2]}", .flags = KC_EXACT)
C(Col2Im, col2im, "T[n,12,25]; i64[2]=[6,6]; i64[2]=[2,2]", F, .sizes = "n=2; n=1; n=33; n=0",
  .flags = CONV, .bench = "n=8192")
C(Col2Im, col2im, "T[n,9,12]; i64[2]=[5,5]; i64[2]=[3,3]", "f32 f16",
  .attrs = "{strides = [2,1], pads = [1,0,1,1]}", .sizes = "n=2; n=1", .flags = CONV)
C(MaxRoiPool, roi, "T[2,m,9,9]; T[3,5]=[0,0,0,7,7, 1,2,3,5,8, 1,4,4,4,4]", "f32 f16 f64",
  .attrs = "{pooled_shape = [2,3]}", .sizes = "m=3; m=1; m=33", .flags = KC_WITH_BIG,
  .bench = "m=4096")
C(RoiAlign, roi, "T[2,m,9,9]; T[3,4]=[0,0,7.5,7, 2,3,5,8.25, 4,4,4.5,6]; i64[3]=[0,1,1]",
  "f32 f16 f64", .attrs = "{output_height = 2, output_width = 3, sampling_ratio = 2}",
  .sizes = "m=3; m=1; m=33", .flags = KC_FUSED | KC_WITH_BIG, .bench = "m=4096")
C(RoiAlign, roi, "T[2,m,9,9]; T[3,4]=[0,0,7.5,7, 2,3,5,8.25, 4,4,4.5,6]; i64[3]=[0,1,1]", "f32",
  .attrs = "{output_height = 2, output_width = 3, mode = \"max\", coordinate_transformation_mode = "
           "\"output_half_pixel\"}",
  .sizes = "m=3", .flags = KC_FUSED)
#define RESIZED "n=2,h=5,w=7; n=1,h=1,w=1; n=3,h=17,w=31"
C(Resize, interpolate, "T[n,3,h,w]; _; f32[4]=[1,1,2,1.5]", F " u8", .sizes = RESIZED,
  .flags = KC_EXACT | KC_WITH_BIG, .bench = IMAGES)
C(Resize, interpolate, "T[n,3,h,w]; _; f32[4]=[1,1,2,1.5]", F " u8", .attrs = "{mode = \"linear\"}",
  .sizes = RESIZED, .flags = KC_FUSED | KC_WITH_BIG | KC_OFF_BY_ONE, .bench = IMAGES)
C(Resize, interpolate, "T[n,3,h,w]; _; f32[4]=[1,1,0.6,1.7]", "f32 f16",
  .attrs = "{mode = \"cubic\", coordinate_transformation_mode = \"align_corners\"}",
  .sizes = "n=2,h=5,w=7; n=3,h=17,w=31", .flags = KC_FUSED | KC_STATIC | KC_WIDE, .bench = IMAGES)
C(Resize, interpolate, "T[n,3,h,w]; _; _; i64[4]=[2,3,4,5]", "f32",
  .attrs = "{mode = \"linear\", antialias = 1}", .sizes = "n=2,h=9,w=17", .flags = KC_FUSED)
C(GridSample, grid_sample, "T[n,3,h,w]; T[n,5,m,2]~in(-1.2,1.2)", "f32 f16 f64",
  .sizes = "n=2,h=5,w=7,m=3; n=1,h=1,w=1,m=1; n=3,h=17,w=31,m=33", .flags = KC_FUSED | KC_WITH_BIG,
  .bench = "n=32,h=56,w=56,m=512")
C(GridSample, grid_sample, "T[n,3,h,w]; T[n,5,m,2]~in(-1.2,1.2)", "f32",
  .attrs = "{mode = \"cubic\", padding_mode = \"reflection\", align_corners = 1}",
  .sizes = "n=2,h=5,w=7,m=3; n=3,h=17,w=31,m=33", .flags = KC_FUSED)
C(GridSample, grid_sample, "T[n,3,h,w]; T[n,5,m,2]~in(-1.2,1.2)", "f32",
  .attrs = "{mode = \"nearest\", padding_mode = \"border\"}",
  .sizes = "n=2,h=5,w=7,m=3; n=3,h=17,w=31,m=33", .flags = KC_FUSED)
C(AffineGrid, affine_grid, "T[n,2,3]; i64[4]~val(n,3,5,6)", "f32 f16 f64",
  .sizes = "n=2; n=1; n=33", .flags = KC_FUSED | KC_WITH_BIG, .bench = "n=65536")
C(AffineGrid, affine_grid, "T[n,3,4]; i64[5]~val(n,3,5,6,2)", "f32", .attrs = "{align_corners = 1}",
  .sizes = "n=2; n=1", .flags = KC_FUSED)
