/* Cases of the families pointwise and cast; see check.h. */
#define P1(name, types)                                                                            \
    C(name, pointwise, "T[n]", types, .sizes = N, .large = LARGE, .bench = FLAT,                   \
      .flags = KC_NUMBERS)
#define P2(name, types)                                                                            \
    C(name, pointwise, "T[n,5]; T[5]", types, .sizes = N, .large = LARGE, .bench = "n=4194304",    \
      .flags = KC_NUMBERS)
#define P3(name, a, types)                                                                         \
    C(name, pointwise, a "[n,1]; T[n,6]; T[6]", types, .sizes = N, .large = LARGE,                 \
      .bench = "n=4194304", .flags = KC_NUMBERS)
P1(Abs, F " i32 i8")
P1(Acos, F)
P1(Acosh, F) P1(Asin, F) P1(Asinh, F) P1(Atan, F) P1(Atanh, F) P1(Ceil, F) P1(Celu, F) P1(Cos, F)
    P1(Cosh, F) P1(Elu, F) P1(Erf, F) P1(Exp, F) P1(Floor, F) P1(HardSigmoid, F) P1(HardSwish, F)
        P1(IsInf, F) P1(IsNaN, F) P1(LeakyRelu, F) P1(Log, F) P1(Mish, F) P1(Neg, F " i32 i64") P1(
            Reciprocal, F) P1(Relu, F " i32") P1(Round, F) P1(Selu, F) P1(Shrink, F) P1(Sigmoid, F)
            P1(Sign, F " i8 u8 i64") P1(Sin, F) P1(Sinh, F) P1(Softplus, F) P1(Softsign, F) P1(
                Sqrt, F) P1(Swish, F)
                P1(Tan, F) P1(Tanh, F) P1(ThresholdedRelu, F) P1(BitwiseNot, "i32 u8 i64") P1(
                    Not, "bool") C(Gelu, pointwise, "T[n]", F, .sizes = N, .large = LARGE,
                                   .bench = FLAT,
                                   .flags = KC_NUMBERS | KC_CANCELS)
                    C(GeluTanh, pointwise, "T[n]", F, .sizes = N, .large = LARGE, .bench = FLAT,
                      .flags = KC_NUMBERS | KC_CANCELS) P2(Add, F " i32 u8 i64")
                        P2(Sub, F " i32 u8 u64") P2(Mul, F " i32 u16 i64") P2(Div, F " i32 u8 i64")
                            P2(Max, F " i32 u32") P2(Min, F " i32 i8") P2(
                                Mod, "i32 u8 i64 f32 f16") P2(FMod, "f32 f16 i32 i64 f64")
                                P2(Pow, F " i32") P2(PRelu, F) P2(Equal, "f32 f16 i64 bool") P2(
                                    Greater, "f32 f16 i64 u64") P2(GreaterOrEqual, "f32 f16 i64")
                                    P2(Less, "f32 f16 i64 u8") P2(LessOrEqual,
                                                                  "f32 f16 i64") P2(And, "bool")
                                        P2(Or, "bool") P2(Xor, "bool") P2(BitwiseAnd, "i32 u8") P2(
                                            BitwiseOr,
                                            "i32 u8") P2(BitwiseXor,
                                                         "i64 u16") P2(ShiftLeft, "u8 u32 u64")
                                            P2(ShiftRight, "u8 u32 u64") P3(
                                                Clip, "T",
                                                "f32 f16 i32") P3(Where, "bool", "f32 f16 i64 u8")
                                                C(Add, pointwise, "T[n,1,m]; T[1,3,1]", "f32 f16",
                                                  .sizes = NM,
                                                  .flags = KC_NUMBERS)
                                                    C(Add, pointwise, "T[]; T[n,m]", "f32 f16",
                                                      .sizes = NM,
                                                      .flags = KC_NUMBERS)
                                                        C(Mul, pointwise, "T[n,m,1,3]; T[m,5,1]",
                                                          "f32 bf16",
                                                          .sizes = NM,
                                                          .flags = KC_NUMBERS)
                                                            C(Pow, pointwise, "T[n]; U[n]",
                                                              "f32:i32 f16:f32 i32:f32",
                                                              .sizes =
                                                                  N) C(Pointwise, pointwise,
                                                                       "T[n,m]; T[m]; T[]=[0.5]", F,
                                                                       .sizes = NM,
                                                                       .flags = KC_FUSED |
                                                                                KC_NUMBERS,
                                                                       .bench = WIDE,
                                                                       .attrs = "{expr = \"t0 = x0 "
                                                                                "* x2; t1 = t0 + "
                                                                                "x1; t2 = "
                                                                                "sigmoid(t1); t1 * "
                                                                                "t2\"}")
                                                                C(Pointwise, pointwise,
                                                                  "T[n,m]; T[n,1]; T[1,m]; T[n,m]",
                                                                  "f32 f16", .sizes = NM,
                                                                  .flags = KC_FUSED | KC_NUMBERS,
                                                                  .attrs = "{expr = \"max(x0, x1) "
                                                                           "+ x2 * abs(x3)\"}")
                                                                    C(Cast, cast, "T[n]",
                                                                      "f32:f16 f16:f32 f32:bf16 "
                                                                      "bf16:f32 f32:f64 f64:f32 "
                                                                      "f64:f16 f16:bf16 f32:i8 "
                                                                      "f32:u8 f32:i32 f32:i64 "
                                                                      "f16:u8 i64:f32 i32:f16 "
                                                                      "u8:f32 i64:i32 i32:i64 "
                                                                      "u64:f32 f32:u64 f32:bool "
                                                                      "bool:f32 bool:i64 "
                                                                      "f32:f8e4m3fn f8e4m3fn:f32 "
                                                                      "f32:f8e5m2 f8e5m2:f16 "
                                                                      "f32:f8e4m3fnuz "
                                                                      "f8e5m2fnuz:f32 f16:f8e4m3fn "
                                                                      "f32:i4 i4:f32 f32:u4 u4:f16 "
                                                                      "u2:f32 f32:i2 f32:f4e2m1 "
                                                                      "f4e2m1:f32 f8e8m0:f32 "
                                                                      "f32:f8e8m0 i8:u4",
                                                                      .attrs = "{to = $U}",
                                                                      .sizes = N, .large = LARGE,
                                                                      .flags = KC_MOVES |
                                                                               KC_WITH_TINY,
                                                                      .bench = FLAT)
                                                                        C(Cast, cast, "T[n]",
                                                                          "f32:f8e4m3fn f16:f8e5m2",
                                                                          .attrs = "{to = $U, "
                                                                                   "saturate = 0}",
                                                                          .sizes = N,
                                                                          .flags = KC_MOVES)
                                                                            C(CastLike, cast,
                                                                              "T[n,3]; U[1]",
                                                                              "f32:f16 f16:i32 "
                                                                              "i32:u8",
                                                                              .sizes = N,
                                                                              .flags = KC_MOVES,
                                                                              .bench = "n=4194304")
