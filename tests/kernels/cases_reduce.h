/* Cases of rows/reduce.def; see check.h. */
#define R(name, types, kind, fl)                                                                   \
    C(name, reduce, "T[n,m]" kind "; i64[1]=[1]", types, .sizes = ROWS,                            \
      .large = "n=3,m=1000003; n=70001,m=5", .flags = fl, .bench = WIDE)                           \
    C(name, reduce, "T[n,m]" kind "; i64[1]=[0]", types, .attrs = "{keepdims = 0}",                \
      .sizes = "n=33,m=7; n=1,m=1; n=1025,m=2; n=31,m=33; n=2,m=1023", .flags = fl, .bench = WIDE) \
    C(name, reduce, "T[n,3,m]" kind "; i64[2]=[0,2]", "f32 f16",                                   \
      .sizes = "n=7,m=33; n=1,m=1; n=3,m=1025", .flags = fl)                                       \
    C(name, reduce, "T[n,m]" kind, "f32 f16", .attrs = "{keepdims = 0}",                           \
      .sizes = "n=7,m=33; n=1,m=1; n=3,m=1025; n=129,m=257", .flags = fl)
#define SUMS (KC_NUMBERS | KC_WIDE)
R(ReduceSum, F " i32 i64", "", SUMS)
R(ReduceMean, F, "", SUMS) R(ReduceMax, F " i32 i8 u8", "", KC_NUMBERS | KC_WITH_MASKED) R(
    ReduceMin, F " i32 i8", "",
    KC_NUMBERS | KC_WITH_MASKED) R(ReduceProd, F " i32", "~in(0.9,1.1)",
                                   KC_WIDE) R(ReduceL1, F, "", SUMS) R(ReduceL2, F, "",
                                                                       SUMS & ~KC_WITH_TINY)
    R(ReduceLogSum, F, "~pos", KC_WIDE) R(ReduceLogSumExp, F, "", SUMS | KC_WITH_MASKED) R(
        ReduceSumSquare,
        F, "", SUMS) C(ReduceSum, reduce, "T[n,m]; i64[1]=[1]", "f32", .sizes = "n=5,m=0; n=0,m=0")
#define ARG(name)                                                                                  \
    C(name, reduce, "T[n,m]", F " i32 u8", .attrs = "{axis = 1}",                                  \
      .sizes = "n=7,m=33; n=1,m=1; n=3,m=1025; n=33,m=32", .flags = KC_NUMBERS | KC_WITH_MASKED,   \
      .bench = WIDE)                                                                               \
    C(name, reduce, "T[n,m,3]", "f32 f16",                                                         \
      .attrs = "{axis = 0, keepdims = 0, select_last_index = 1}",                                  \
      .sizes = "n=7,m=33; n=1,m=1; n=1025,m=2", .flags = KC_NUMBERS)
        ARG(
            ArgMax) ARG(ArgMin)
#define S(name, fl)                                                                                \
    C(name, softmax, "T[n,m]", F, .sizes = ROWS, .large = "n=3,m=100003; n=50001,m=7",             \
      .flags = fl, .bench = "n=8192,m=1024; n=256,m=32000; n=65536,m=64")                          \
    C(name, softmax, "T[n,m,3]", "f32 f16", .attrs = "{axis = 1}",                                 \
      .sizes = "n=7,m=33; n=1,m=1; n=3,m=1025", .flags = fl)
            S(Softmax, KC_NUMBERS | KC_WITH_MASKED | KC_FUSED) S(
                LogSoftmax,
                KC_NUMBERS | KC_WITH_MASKED |
                    KC_FUSED | KC_CANCELS) S(Hardmax, KC_NUMBERS | KC_WITH_MASKED)
                S(LpNormalization, KC_WITH_BIG | KC_WITH_EQUAL | KC_WITH_CANCEL | KC_FUSED) C(
                    LpNormalization,
                    softmax, "T[n,m]", F,
                    .attrs = "{p = 1}",
                    .sizes = ROWS,
                    .flags = KC_WITH_BIG |
                             KC_WITH_EQUAL |
                             KC_FUSED)
#define NORMED (KC_WITH_BIG | KC_WITH_EQUAL | KC_WITH_TINY | KC_WITH_CANCEL | KC_FUSED)
                    C(LayerNormalization, row_norm, "T[n,m]; T[m]~pos; T[m]", F, .sizes = CENTRED,
                      .large = "n=3,m=100003",
                      .flags = NORMED,
                      .bench = "n=8192,m=1024; n=4096,m=4096")
                        C(LayerNormalization, row_norm, "T[n,3,m]; T[3,m]~pos", "f32 f16",
                          .attrs = "{axis = 1}", .outs = "yyy", .sizes = CENTRED, .flags = NORMED)
                            C(RMSNormalization, row_norm, "T[n,m]; T[m]~pos", F, .sizes = CENTRED,
                              .large = "n=3,m=100003",
                              .flags = NORMED,
                              .bench = "n=8192,m=1024; n=4096,m=4096")
                                C(SkipLayerNormalization, row_norm,
                                  "T[n,3,m]; T[n,3,m]; T[m]~pos; T[m]; T[m]", "f32 f16 bf16",
                                  .outs =
                                      "y__y",
                                  .sizes = CENTRED,
                                  .flags = NORMED,
                                  .bench =
                                      "n=2731,m=1024") C(SkipLayerNormalization, row_norm,
                                                         "T[n,3,m]; T[3,m]; T[m]~pos",
                                                         "f32 f16", .sizes = CENTRED,
                                                         .flags = NORMED)
                                    C(SkipSimplifiedLayerNormalization, row_norm,
                                      "T[n,3,m]; T[n,3,m]; T[m]~pos; T[m]", "f32 f16 bf16",
                                      .outs =
                                          "y__y",
                                      .sizes = CENTRED,
                                      .flags = NORMED,
                                      .bench = "n=2731,m=1024")
                                        C(EmbedLayerNormalization, row_norm,
                                          "i32[n,m]~int(0,9); i32[n,m]~int(0,1); T[10,k]; "
                                          "T[1030,k]; T[2,k]; T[k]~pos; T[k]; i32[n,m]~int(0,1)",
                                          "f32 f16", .outs = "yyy",
                                          .sizes = "n=2,m=5,k=33; n=1,m=1,k=8; n=3,m=31,k=64",
                                          .flags = KC_FUSED, .bench = "n=32,m=512,k=768")
                                            C(EmbedLayerNormalization, row_norm,
                                              "i32[n,m]~int(0,9); _; T[10,k]; T[1030,k]; _; "
                                              "T[k]~pos; T[k]",
                                              "f32", .outs = "y", .sizes = "n=2,m=5,k=33",
                                              .flags = KC_FUSED)
#define CHANNELS "n=2,m=33; n=1,m=1; n=3,m=1025; n=33,m=5"
                                                C(BatchNormalization, moments,
                                                  "T[n,6,m]; T[6]~pos; T[6]; T[6]; T[6]~pos", F,
                                                  .sizes = CHANNELS "; n=0,m=4",
                                                  .flags = KC_FUSED | KC_WITH_BIG | KC_WITH_EQUAL,
                                                  .bench =
                                                      "n=64,m=3136") C(BatchNormalization, moments,
                                                                       "T[n,6,m]; T[6]~pos; T[6]; "
                                                                       "T[6]; T[6]~pos",
                                                                       "f32 f16",
                                                                       .attrs =
                                                                           "{training_mode = 1}",
                                                                       .outs = "yyy", .sizes = CHANNELS,
                                                                       .flags = KC_FUSED)
                                                    C(InstanceNormalization,
                                                      moments, "T[n,6,m]; T[6]~pos; T[6]", F,
                                                      .sizes = CHANNELS, .flags = NORMED,
                                                      .bench =
                                                          "n=64,m=3136") C(GroupNormalization,
                                                                           moments,
                                                                           "T[n,6,m,2]; T[6]~pos; "
                                                                           "T[6]",
                                                                           F, .attrs = "{num_groups = 3}",
                                                                           .sizes = CHANNELS,
                                                                           .flags = NORMED, .bench = "n=64,m=3136")
                                                        C(MsGroupNorm, moments,
                                                          "T[n,m,2,6]; f32[6]~pos; f32[6]",
                                                          "f32 f16", .attrs = "{groups = 3, activation = 1}",
                                                          .sizes = CHANNELS,
                                                          .flags = (NORMED & ~KC_WITH_CANCEL) |
                                                                   KC_CANCELS,
                                                          .bench = "n=64,m=3136") C(MsGroupNorm,
                                                                                    moments,
                                                                                    "T[n,6,m,2]; "
                                                                                    "f32[6]~pos; "
                                                                                    "f32[6]",
                                                                                    "f32 f16", .attrs = "{groups = 2, channels_last = 0}",
                                                                                    .sizes =
                                                                                        CHANNELS,
                                                                                    .flags =
                                                                                        (NORMED &
                                                                                         ~KC_WITH_CANCEL) |
                                                                                        KC_CANCELS)
                                                            C(MeanVarianceNormalization, moments,
                                                              "T[n,3,4,m]",
                                                              F,
                                                              .sizes = CHANNELS,
                                                              .flags = KC_FUSED |
                                                                       KC_WITH_BIG,
                                                              .bench = "n=64,m=3136")
                                                                C(MeanVarianceNormalization,
                                                                  moments, "T[n,3,4,m]",
                                                                  "f32 f16",
                                                                  .attrs = "{axes = [1,3]}",
                                                                  .sizes = CHANNELS,
                                                                  .flags = KC_FUSED |
                                                                           KC_WIDE)
                                                                    C(CumSum, cumulate,
                                                                      "T[n,m]; i64[]=[1]",
                                                                      F " i32 i64",
                                                                      .sizes = ROWS,
                                                                      .large = "n=3,m=100003",
                                                                      .flags = KC_WIDE |
                                                                               KC_WITH_BIG |
                                                                               KC_WITH_CANCEL |
                                                                               KC_WITH_EQUAL,
                                                                      .bench = WIDE)
                                                                        C(CumSum,
                                                                          cumulate, "T[n,m]; i64[]=[0]",
                                                                          "f32 f16 i32",
                                                                          .attrs = "{exclusive = "
                                                                                   "1, reverse = "
                                                                                   "1}",
                                                                          .sizes = ROWS,
                                                                          .flags = KC_WIDE) C(CumProd,
                                                                                              cumulate,
                                                                                              "T[n,"
                                                                                              "m]~"
                                                                                              "in("
                                                                                              "0.9,"
                                                                                              "1.1)"
                                                                                              "; "
                                                                                              "i64["
                                                                                              "]=["
                                                                                              "1]",
                                                                                              F
                                                                                              " i3"
                                                                                              "2",
                                                                                              .sizes =
                                                                                                  ROWS,
                                                                                              .flags =
                                                                                                  KC_WIDE | KC_FUSED,
                                                                                              .bench =
                                                                                                  WIDE)
                                                                            C(LRN, lrn,
                                                                              "T[n,7,m,3]",
                                                                              F, .attrs = "{size = 3}",
                                                                              .sizes = "n=2,m=5; "
                                                                                       "n=1,m=1; "
                                                                                       "n=3,m=33; "
                                                                                       "n=0,m=1",
                                                                              .flags =
                                                                                  KC_FUSED |
                                                                                  KC_WITH_BIG |
                                                                                  KC_WITH_TINY |
                                                                                  KC_WITH_EQUAL,
                                                                              .bench =
                                                                                  "n=256,m=1024") C(LRN,
                                                                                                    lrn,
                                                                                                    "T[n,7,m]",
                                                                                                    "f32",
                                                                                                    .attrs = "{size = 4, alpha = 0.01, beta = 0.5, bias = 2}",
                                                                                                    .sizes =
                                                                                                        "n=2,m=5; n=1,m=33",
                                                                                                    .flags =
                                                                                                        KC_FUSED)
#define LOSS "n=5,m=7; n=1,m=1; n=33,m=31; n=2,m=1025"
                                                                                C(SoftmaxCrossEntropyLoss,
                                                                                  loss,
                                                                                  "T[n,7,m]; "
                                                                                  "i64[n,m]~int(0,"
                                                                                  "6)",
                                                                                  F, .outs = "yy",
                                                                                  .sizes = LOSS,
                                                                                  .flags =
                                                                                      KC_FUSED |
                                                                                      KC_WIDE |
                                                                                      KC_WITH_BIG |
                                                                                      KC_WITH_EQUAL,
                                                                                  .bench =
                                                                                      "n=256,m="
                                                                                      "1024")
                                                                                    C(SoftmaxCrossEntropyLoss,
                                                                                      loss,
                                                                                      "T[n,m]; "
                                                                                      "i32[n]~int(-"
                                                                                      "1,0); "
                                                                                      "T[m]~pos",
                                                                                      "f32 f16",
                                                                                      .attrs =
                                                                                          "{ignore_"
                                                                                          "index = "
                                                                                          "-1, "
                                                                                          "reductio"
                                                                                          "n = "
                                                                                          "\"sum\""
                                                                                          "}",
                                                                                      .sizes = LOSS,
                                                                                      .flags =
                                                                                          KC_FUSED |
                                                                                          KC_WIDE) C(SoftmaxCrossEntropyLoss,
                                                                                                     loss,
                                                                                                     "T[n,7,m]; i64[n,m]~int(0,6)",
                                                                                                     "f32 f16",
                                                                                                     .attrs = "{reduction = \"none\"}",
                                                                                                     .sizes = LOSS,
                                                                                                     .flags = KC_FUSED | KC_WIDE)
                                                                                        C(NegativeLogLikelihoodLoss,
                                                                                          loss,
                                                                                          "T[n,7,m]"
                                                                                          "; "
                                                                                          "i64[n,m]"
                                                                                          "~int(0,"
                                                                                          "6); "
                                                                                          "T[7]~"
                                                                                          "pos",
                                                                                          F,
                                                                                          .sizes =
                                                                                              LOSS,
                                                                                          .flags =
                                                                                              KC_FUSED |
                                                                                              KC_WIDE |
                                                                                              KC_WITH_BIG,
                                                                                          .bench =
                                                                                              "n="
                                                                                              "256,"
                                                                                              "m="
                                                                                              "102"
                                                                                              "4")
                                                                                            C(NegativeLogLikelihoodLoss,
                                                                                              loss,
                                                                                              "T[n,"
                                                                                              "7,m]"
                                                                                              "; "
                                                                                              "i64["
                                                                                              "n,m]"
                                                                                              "~int"
                                                                                              "(0,"
                                                                                              "6)",
                                                                                              "f32 "
                                                                                              "f16",
                                                                                              .attrs =
                                                                                                  "{reduction = \"none\", ignore_index = 3}",
                                                                                              .sizes =
                                                                                                  LOSS)
                                                                                                C(Det,
                                                                                                  det,
                                                                                                  "T[n,m,m]",
                                                                                                  F,
                                                                                                  .sizes =
                                                                                                      "n=5,m=5; n=1,m=1; n=2,m=17; n=3,m=2; n=0,m=3",
                                                                                                  .flags =
                                                                                                      KC_FUSED |
                                                                                                      KC_WIDE |
                                                                                                      KC_WITH_EQUAL,
                                                                                                  .bench =
                                                                                                      "n=4096,m=32")
                                                                                                    C(Det,
                                                                                                      det,
                                                                                                      "T[m,m]",
                                                                                                      "f32 f64",
                                                                                                      .sizes =
                                                                                                          "m=5; m=1; m=33",
                                                                                                      .flags =
                                                                                                          KC_WIDE)
